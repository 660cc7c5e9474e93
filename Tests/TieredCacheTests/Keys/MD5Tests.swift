import Foundation
import HTTPCaching
import Testing

@_spi(Benchmarks) @testable import TieredCache

@Suite("MD5", .timeLimit(.minutes(10)))
struct MD5Tests {
    /// RFC 1321 §A.5.
    static let vectors: [(text: String, digest: String)] = [
        ("", "d41d8cd98f00b204e9800998ecf8427e"),
        ("a", "0cc175b9c0f1b6a831c399e269772661"),
        ("abc", "900150983cd24fb0d6963f7d28e17f72"),
        ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
        (
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            "d174ab98d277d9f5a5611c2c9f419d9f"
        ),
        (
            "1234567890123456789012345678901234567890"
                + "1234567890123456789012345678901234567890",
            "57edf4a22be3c955ac49da2e2107b67a"
        ),
    ]

    /// The context of the process, and the one that FIPS mode does not reach.
    enum Source: CaseIterable, Sendable {
        case process, ownContext
    }

    @Test(arguments: Source.allCases)
    func `The vectors of RFC 1321`(source: Source) throws {
        let md5 = try Self.digests(source)
        for (text, digest) in Self.vectors {
            let found = Array(text.utf8).withUnsafeBytes { md5.digest(of: $0) }
            #expect(found.hexadecimal == digest, "\(text)")
        }
    }

    @Test
    func `Both contexts agree with each other at every length`() throws {
        let process = try Self.digests(.process)
        let own = try Self.digests(.ownContext)
        var random = SplitMix(seed: 1)
        for length in Array(0...300) + [4095, 4096, 65_537, 1_000_003] {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            let expected = bytes.withUnsafeBytes { MD5.digest(of: $0) }
            #expect(bytes.withUnsafeBytes { process.digest(of: $0) } == expected, "\(length)")
            #expect(bytes.withUnsafeBytes { own.digest(of: $0) } == expected, "\(length)")
        }
    }

    @Test
    func `The digests are those of md5sum`() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("md5-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var random = SplitMix(seed: 2)
        var expected: [String: String] = [:]
        for length in Array(0...300) + [8192, 1_048_577] {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            try Data(bytes).write(to: folder.appendingPathComponent("\(length)"))
            expected["\(length)"] = bytes.withUnsafeBytes { MD5.digest(of: $0).hexadecimal }
        }
        #expect(try Self.md5sum(folder: folder) == expected)
    }

    @Test
    func `Threads do not disturb each other`() async {
        await withTaskGroup(of: Bool.self) { group in
            for task in 0..<8 {
                group.addTask {
                    (0..<500).allSatisfy { round in
                        let bytes = Array("key \(task) \(round)".utf8)
                        let context = DigestContext(.md5)
                        guard bytes.withUnsafeBytes({ context?.update($0) == true }) else {
                            return false
                        }
                        let digest = bytes.withUnsafeBytes { MD5.digest(of: $0) }
                        return context?.finish()?.description == "md5=\(digest)"
                    }
                }
            }
            for await agrees in group { #expect(agrees) }
        }
    }

    @Test
    func `A machine without an algorithm gets an error in one line, and no cache`() throws {
        #expect(DigestAlgorithm.fetch("MD5", properties: "provider=none") != nil)
        let none = DigestAlgorithm.fetch("no such algorithm")
        #expect(none == nil)
        let error = #expect(throws: CacheError.self) {
            try MD5.requireAlgorithms(md5: none.flatMap { ThreadDigest($0) })
        }
        #expect(error?.code == .localStorage)
        #expect(error?.message.contains("libcrypto offers no MD5") == true)
        let other = #expect(throws: CacheError.self) {
            try MD5.requireAlgorithms(sha256: none)
        }
        #expect(other?.message.contains("libcrypto offers no SHA-256") == true)
        try MD5.requireAlgorithms()
    }

    static func digests(_ source: Source) throws -> ThreadDigest {
        switch source {
        case .process: return try #require(MD5.shared)
        case .ownContext:
            let algorithm = try #require(DigestAlgorithm.fetchFromOwnContext("MD5"))
            return try #require(ThreadDigest(algorithm))
        }
    }

    /// The names and digests that `md5sum *` prints in `folder`.
    static func md5sum(folder: URL) throws -> [String: String] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "exec md5sum *"]
        process.currentDirectoryURL = folder
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
        let pairs = lines.map { ($0.dropFirst(34), $0.prefix(32)) }
        return Dictionary(uniqueKeysWithValues: pairs.map { (String($0), String($1)) })
    }
}
