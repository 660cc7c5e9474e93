import TestParts
import Testing
import TieredCache
import TieredCacheTesting

/// What a client sees that asks for parts in any order.
@Suite(
    .tags(.player, .realTime),
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.curl.isInstalled
)
struct CurlTests {
    private func get(_ url: String, _ arguments: String...) async throws -> [UInt8] {
        let outcome = try await PlayerTool.curl.run(["-s", "-S", "-f"] + arguments + [url])
        #expect(outcome.hasSucceeded, "\(outcome.error)")
        return outcome.output
    }

    @Test("Parts in any order fetch little more than they are")
    func parts() async throws {
        try await PlayerStage.with { stage in
            let length: Int64 = 64 << 20
            let film = OriginResource.generated(length: length, cacheControl: "max-age=600")
            let body = try #require(film.generatedBody)
            stage.origin.serve("/film.bin", film)
            let url = try stage.url("film.bin")
            var wanted: Int64 = 0
            for place in [50, 3, 27, 41, 12, 60] {
                let start = Int64(place) << 20 + 777
                let range = start..<start + 500_000
                let begin = SystemTimeSource().monotonicTime()
                let bytes = try await get(url, "-r", "\(start)-\(range.upperBound - 1)")
                PlayerFigures.tell("curl", "500 kB at \(place) MiB", since: begin)
                let isRight = bytes == body.bytes(in: range)
                #expect(isRight)
                wanted += 500_000
            }
            #expect(Double(stage.origin.log.bodyBytesWritten) <= Double(wanted) * 1.3)
            let tail = try await get(url, "-r", "-1000")
            #expect(firstDifference(tail, body.bytes(in: length - 1000..<length)) == nil)
            let fetched = stage.origin.log.bodyBytesWritten
            PlayerFigures.tell("curl parts", fetched: fetched, needed: wanted + 1000)
            let asked = stage.origin.log.exchanges.count
            let again = try await get(url, "-r", "\(50 << 20)-\(50 << 20 + 300_000)")
            #expect(
                firstDifference(again, body.bytes(in: 50 << 20..<Int64(50 << 20 + 300_001))) == nil
            )
            #expect(stage.origin.log.exchanges.count == asked)
        }
    }

    @Test("Twelve mixed clients fetch something cold once, or at most a tenth more")
    func twelveClients() async throws {
        try await PlayerStage.with { stage in
            let length: Int64 = 32 << 20
            let film = OriginResource.generated(length: length, cacheControl: "max-age=600")
            let body = try #require(film.generatedBody)
            stage.origin.serve("/film.bin", film)
            let url = try stage.url("film.bin")
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for client in 0..<12 {
                    group.addTask {
                        let start = Int64(client % 4) * (length / 4)
                        let end = client % 3 == 0 ? length : min(length, start + length / 3)
                        let range = client % 3 == 0 ? "\(start)-" : "\(start)-\(end - 1)"
                        return try await get(url, "-r", range) == body.bytes(in: start..<end)
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
            #expect(stage.origin.log.bodyBytesWritten <= length * 11 / 10)
        }
    }

    @Test("An origin that is slow, cuts, stalls and refuses changes no byte")
    func troubledOrigins() async throws {
        try await PlayerStage.with { stage in
            try stage.serve("tail.mp4", .troubled)
            let isRight = try await get(stage.url("tail.mp4")) == stage.media.bytes("tail.mp4")
            #expect(isRight)
            stage.expectLittleTwice("curl tail.mp4, troubled")
            try await stage.withoutOrigin {
                let again = try await get(stage.url("tail.mp4")) == stage.media.bytes("tail.mp4")
                #expect(again)
            }
        }
    }

    @Test("A file that changes under it never mixes with the next one")
    func changes() async throws {
        try await PlayerStage.with { stage in
            let seen = try await stage.whileItChanges { try await PlayerTool.curl.run(["-s", $0]) }
            let isOld = try stage.media.bytes("fast.mp4").starts(with: seen.output)
            #expect(isOld && seen.output.count > 0)
            let isNew = try await get(stage.url("fast.mp4")) == stage.media.bytes("other.mp4")
            #expect(isNew)
        }
    }
}
