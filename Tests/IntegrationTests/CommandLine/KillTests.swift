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

/// SIGKILL at any moment: no wrong byte, and hardly one fetched twice.
@Suite("SIGKILL", .tags(.realTime), .timeLimit(.minutes(10)))
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
            var stored: Int64 = 0
            for point in points {
                let outcome = try await place.get("/a", into: "a") { running in
                    await place.origin.waitUntil { $0.bodyBytesWritten >= point }
                    running.send(SIGKILL)
                    await place.origin.waitUntil { $0.openConnections == 0 }
                }
                #expect(outcome.exitCode == nil, "seed \(seed)")
                #expect(place.files.names == ["cache"], "seed \(seed)")
                #expect(place.lastStart("/a") == stored, "seed \(seed)")
                stored = try await place.run("list", "--json").json.integer("held") ?? 0
            }
            let last = try await place.get("/a", into: "a")
            last.expectDone()
            #expect(place.lastStart("/a") == stored, "seed \(seed)")
            #expect(try place.file("a", equals: "/a"), "seed \(seed)")
            // Less than a block, and what had not come to where blocks are written.
            let again = place.origin.log.bodyBytesWritten(for: "/a") - length
            let bound = Int64(kills) * (65_536 + Self.underWay)
            #expect(again <= bound, "\(again), seed \(seed)")
            let twice = place.sentTwice("/a")
            // The books balance: nothing was sent twice but around the kills.
            #expect(twice.count == kills && twice.reduce(0, +) == again, "seed \(seed)")
            Workplace.report("sent twice around SIGKILL, sockets included", twice)
            let verify = try await place.run("verify", "--json")
            verify.expectDone()
            #expect(verify.json.integer("damaged") == 0)
        }
    }

    @Test("Of what the program has received, SIGKILL loses less than one block")
    func losesLessThanABlock() async throws {
        let (length, sent): (Int64, Int64) = (4 << 20, (3 << 20) + 40_000)
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: length, .first(1, .stall(after: sent)))
            let outcome = try await place.get("/a", into: "a") { running in
                // The first to open the directory owns it: that must be the download.
                await place.origin.waitUntil { !$0.exchanges.isEmpty }
                // All but the begun block is on disk once the program has taken all there is.
                var stored: Int64 = 0
                while stored < 3 << 20 {
                    stored = try await place.run("list", "--json").json.integer("held") ?? 0
                }
                running.send(SIGKILL)
                await place.origin.waitUntil { $0.openConnections == 0 }
            }
            #expect(outcome.exitCode == nil)
            let last = try await place.get("/a", into: "a")
            last.expectDone()
            #expect(place.lastStart("/a") == 3 << 20)
            #expect(place.origin.log.bodyBytesWritten(for: "/a") == length + 40_000)
            Workplace.report("fetched twice after SIGKILL", place.sentTwice("/a"))
            #expect(try place.file("a", equals: "/a"))
        }
    }

    /// What the origin's kernel had taken and the program had not come to: the largest send and
    /// receive buffer that this kernel gives, and what waits in the program to be taken.
    private static let underWay: Int64 =
        largestBuffer("tcp_wmem") + largestBuffer("tcp_rmem") + (2 << 20)

    private static func largestBuffer(_ name: String) -> Int64 {
        let file = fopen("/proc/sys/net/ipv4/\(name)", "r")
        defer { if let file { fclose(file) } }
        var text = [CChar](repeating: 0, count: 200)
        guard let file, fgets(&text, 200, file) != nil else { return 8 << 20 }
        let numbers = String(decoding: text.map(UInt8.init(bitPattern:)), as: UTF8.self)
            .split { !$0.isNumber }
        return numbers.dropFirst(2).first.flatMap { Int64($0) } ?? 8 << 20
    }
}

extension Workplace {
    /// The first byte that the last request for a target asked for.
    fileprivate func lastStart(_ target: String) -> Int64? {
        exchanges(target).last.map(Self.start) ?? 0
    }
}
