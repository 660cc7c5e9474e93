import FoundationEssentials
import Subprocess
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

/// `tieredcache serve` before an origin that knows neither ranges nor entity tags.
@Suite(.tags(.server, .realTime), .timeLimit(.minutes(10)), PlainOrigin.isInstalled)
struct ServePlainOriginTests {
    private static let film = GeneratedBody(seed: 5, length: 5_000_000)

    /// Gets a URL with curl.
    private func get(_ url: String, _ arguments: String...) async throws -> [UInt8] {
        let result = try await Subprocess.run(
            .name("curl"),
            arguments: Arguments(["-sS", "--noproxy", "*"] + arguments + [url]),
            output: .bytes(limit: 16 << 20),
            error: .string(limit: 1 << 20)
        )
        #expect(result.terminationStatus == .exited(0), "\(result.standardError)")
        return result.standardOutput
    }

    @Test(
        "After a part, the whole comes to its end, in the same process and in the next one",
        arguments: [true, false]
    )
    func parts(_ isOld: Bool) async throws {
        try await Workplace.with { place in
            let served = try TemporaryDirectory("tieredcache-served")
            try served.write(Self.film, to: "film.mp4")
            if isOld {
                // Its date is then a strong validator; that of a new file is not yet.
                try FileManager.default.setAttributes(
                    [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)],
                    ofItemAtPath: served.appending("film.mp4").string
                )
            }
            let log = try await PlainOrigin.serving(served.path) { port in
                let path = "http/127.0.0.1:\(port)/film.mp4"
                try await place.serving { base in
                    let part = try await get(base + path, "-r", "100-199")
                    #expect(firstDifference(part, Self.film.bytes(in: 100..<200)) == nil)
                }
                try await place.serving { base in
                    #expect(try await firstDifference(get(base + path), Self.film.bytes()) == nil)
                    let tail = try await get(base + path, "-r", "-1000")
                    #expect(
                        firstDifference(tail, Self.film.bytes(in: 4_999_000..<5_000_000)) == nil
                    )
                }
            }
            // The part, whether it is current (three times at most), and the whole.
            #expect(log.count { $0.contains("\"GET /film.mp4 ") } <= 5, "\(log)")
        }
    }
}
