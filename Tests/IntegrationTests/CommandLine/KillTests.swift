import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// SIGKILL at any moment: no wrong byte, and hardly one fetched twice.
@Suite("SIGKILL", .timeLimit(.minutes(10)))
struct KillTests {
    @Test("Killed again and again at random points, resumed, and equal in the end")
    func killed() async throws {
        let length: Int64 = 24 << 20
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SplitMix(seed: seed)
        let kills = 6
        let points = (1...kills).map { Int64($0) * 3 << 20 }
            .map { $0 + Int64.random(in: 0..<(2 << 20), using: &generator) }
        try await Workplace.with { place in
            // Slow enough that the sockets hold little that the program has not read.
            let slow = OriginBehaviour.throttled(bytesPerSecond: 24 << 20)
            place.origin.serveFresh("/a", length: length, OriginScript(slow))
            var held: Int64 = 0
            for point in points {
                let outcome = try await place.get("/a", into: "a") { running in
                    await place.origin.waitUntil { $0.bodyBytesWritten >= point }
                    running.send(SIGKILL)
                    await place.origin.waitUntil { $0.openConnections == 0 }
                }
                #expect(outcome.exitCode == nil, "seed \(seed)")
                #expect(place.files.names == ["cache"], "seed \(seed)")
                #expect(place.lastStart("/a") == held, "seed \(seed)")
                held = try await place.run("list", "--json").json.integer("held") ?? 0
            }
            let last = try await place.get("/a", into: "a")
            last.expectDone()
            #expect(place.lastStart("/a") == held, "seed \(seed)")
            #expect(try place.file("a", equals: "/a"), "seed \(seed)")
            // Less than a block and what the two sockets and the pipe between them can hold.
            let again = place.origin.log.bodyBytesWritten(for: "/a") - length
            #expect(again <= Int64(kills) * (65_536 + Self.socketBuffers), "\(again), seed \(seed)")
            let verify = try await place.run("verify", "--json")
            verify.expectDone()
            #expect(verify.json.integer("damaged") == 0)
        }
    }

    /// What the origin's kernel took and the program had not written: send and receive buffer.
    private static let socketBuffers: Int64 = 2 << 20
}

extension Workplace {
    /// The first byte that the last request for a target asked for.
    fileprivate func lastStart(_ target: String) -> Int64? {
        guard let range = exchanges(target).last?.fields[.range] else { return 0 }
        return Int64(range.dropFirst("bytes=".count).prefix { $0 != "-" })
    }
}

/// Steele, Lea and Flood's generator, for tests that name their seed.
private struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
