import Dispatch
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Players that pause in films whose blocks are given up meanwhile, at the proxies of two
/// processes on one directory.
///
/// What the kernel still refers to when a hole is punched arrives as zeros, with the right status
/// and length.
@Suite("Punching under load", .tags(.long, .realTime), .timeLimit(.minutes(5)))
struct PunchingLoadTests {
    private static let length = 26 << 20
    private static let films = (UInt64(1)...3).map { seed in
        GeneratedBody(seed: seed, length: Int64(length)).bytes()
    }

    /// What a player has met; thrown, as its thread is none of a test.
    private struct Failure: Error {
        let words: String

        init(_ words: String) { self.words = words }
    }

    /// One read: which film it reads, from where, how far, and how it pauses.
    private struct Read {
        let film: Int
        let start: Int
        let count: Int
        let pauses: Bool

        static func random() -> Read {
            let start = Int.random(in: 0..<length - 4096)
            let wanted = [64 << 10, 1 << 20, 8 << 20, length].randomElement() ?? 0
            return Read(
                film: Int.random(in: 0..<films.count),
                start: start,
                count: min(wanted, length - start),
                pauses: Bool.random()
            )
        }
    }

    @Test("Every byte of ten players that pause is right", .timeLimit(.minutes(3)))
    func pausing() async throws {
        try await Workplace.with { place in
            for (index, film) in Self.films.enumerated() {
                let fields: HTTPFields = [.cacheControl: "max-age=3600"]
                place.origin.serve("/\(index)", OriginResource(.bytes(film), fields: fields))
            }
            let limits = ["--disk-limit", "34MiB", "--memory-limit", "1MiB", "--min-free", "0"]
            try await place.serve(limits) { owner in
                try await place.serve(limits) { guest in
                    try await withThrowingTaskGroup { group in
                        for player in 0..<10 {
                            let proxy = player % 2 == 0 ? owner : guest
                            group.addTask { try await play(place.origin, proxy) }
                        }
                        try await group.waitForAll()
                    }
                }
            }
        }
    }

    /// Reads for a quarter of a minute, on a thread of its own.
    private func play(_ origin: ScriptedOrigin, _ proxy: ServingProgram) async throws {
        let queue = DispatchQueue(label: "player")
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            queue.async {
                done.resume(
                    with: Result {
                        let end = ContinuousClock.now + .seconds(15)
                        while ContinuousClock.now < end {
                            try Self.play(.random(), origin, proxy)
                        }
                    }
                )
            }
        }
    }

    private static func play(
        _ read: Read,
        _ origin: ScriptedOrigin,
        _ proxy: ServingProgram
    ) throws {
        let film = origin.url("/\(read.film)").replacing("://", with: "/")
        let path = proxy.base.replacing("http://127.0.0.1:\(proxy.port)", with: "") + film
        let client = try RawConnection(port: proxy.port)
        let range = read.start..<read.start + read.count
        try client.send(
            "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(proxy.port)\r\n"
                + "Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)\r\n\r\n"
        )
        if read.pauses { usleep(.random(in: 0...1_500_000)) }
        let head = try client.receiveHead()
        guard head.hasPrefix("HTTP/1.1 206") else { throw Failure(head) }
        var position = range.lowerBound
        while position < range.upperBound {
            let bytes = try client.receive(atMost: min(1 << 20, range.upperBound - position))
            guard !bytes.isEmpty else { throw Failure("cut at \(position) of \(range)") }
            let end = position + bytes.count
            let isRight = films[read.film][position..<end].withUnsafeBytes { expected in
                expected.baseAddress.map { memcmp($0, bytes, bytes.count) == 0 } ?? false
            }
            guard isRight else {
                throw Failure("wrong bytes within \(position)..<\(end) of film \(read.film)")
            }
            position = end
            if read.pauses, Int.random(in: 0..<10) == 0 { usleep(300_000) }
        }
    }
}
