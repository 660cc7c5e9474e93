import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Logging
import SystemPackage
import TieredCache
import TieredCacheTesting

/// The steps of the demo, each with its claims.
extension Demo {
    mutating func coldGet() async throws {
        report.heading("1. A cold get of 64 MiB: every byte comes from the origin.")
        let film = OriginResource.generated(
            length: 64 * Self.mebibyte,
            seed: 1,
            cacheControl: Self.freshForAnHour
        )
        origin.serve("/film.mp4", film)
        let outcome = try await get("/film.mp4", into: "film.mp4")
        let told = outcome.report
        report.claim("the command succeeded", holds: outcome.succeeded)
        report.claim("source is \"origin\"", holds: told?.source == "origin")
        report.claim(
            "\(size(told?.fromOrigin ?? 0)) came from the origin",
            holds: told?.fromOrigin == film.length
        )
        report.claim(
            "the file equals what the origin has",
            holds: try equals("film.mp4", resource: film)
        )
        let written = origin.log.bodyBytesWritten(for: "/film.mp4")
        report.claim("the origin sent each byte once", holds: written == film.length)
        if let seconds = told?.seconds, seconds > 0 {
            report.say("It took \(seconds) s: \(size(Int64(Double(film.length) / seconds)))/s.")
        }
    }

    mutating func diskHit() async throws {
        report.heading("2. The same get in a new process: every byte comes from the disk.")
        let film = origin.resource("/film.mp4")
        let before = origin.log.exchanges.count
        let outcome = try await get("/film.mp4", into: "film-again.mp4")
        let told = outcome.report
        report.claim("source is \"disk\"", holds: told?.source == "disk")
        report.claim("no byte came from the origin", holds: told?.fromOrigin == 0)
        report.claim("the origin was not even asked", holds: origin.log.exchanges.count == before)
        report.claim(
            "the file equals the first",
            holds: try film.map { try equals("film-again.mp4", resource: $0) } ?? false
        )
    }

    mutating func memoryHit() async throws {
        report.heading("3. A poster asked for twice in one process: the second time from memory.")
        let poster = OriginResource.generated(
            length: 200_000,
            seed: 3,
            cacheControl: Self.freshForAnHour
        )
        origin.serve("/poster.jpg", poster)
        var configuration = MediaCache.Configuration(path: program.cacheDirectory)
        configuration.logger.logLevel = .error
        let cache = try MediaCache(configuration)
        let request = try CacheRequest(origin.url("/poster.jpg"))
        _ = try await cache.data(for: request)
        let time = SystemTimeSource()
        let start = time.monotonicTime()
        let stored = cache.cachedData(for: request)
        let elapsed = start.duration(to: time.monotonicTime())
        let response = try await cache.response(for: request)
        report.claim("source is \"memory\"", holds: response.source == .memory)
        let bytes = stored.map { Array($0) } ?? []
        report.claim(
            "the bytes equal what the origin has",
            holds: bytes.count == Int(poster.length) && poster.generatedBody?.matches(bytes) == true
        )
        report.claim(
            "the origin was asked once",
            holds: origin.log.exchanges(for: "/poster.jpg").count == 1
        )
        report.say("The synchronous look-up took \(elapsed.saturatedNanoseconds / 1000) µs.")
        await cache.shutdown()
    }

    mutating func killAndResume() async throws {
        report.heading("4. A download of 64 MiB is killed with SIGKILL halfway and resumed.")
        let film = OriginResource.generated(
            length: 64 * Self.mebibyte,
            seed: 4,
            cacheControl: Self.freshForAnHour
        )
        // Slow, so that little is in transit between origin and disk at the moment of the kill.
        let slow = OriginBehaviour.throttled(bytesPerSecond: 40 << 20)
        origin.serve("/long.mp4", film, .first(1, slow))
        let file = files.appending("long.mp4").string
        let half = film.length / 2
        let origin = origin
        try await program.runAndKill(["get", origin.url("/long.mp4"), "--output", file]) {
            await origin.waitUntil { $0.bodyBytesWritten(for: "/long.mp4") >= half }
        }
        await origin.waitUntil { $0.openResponses == 0 }
        let sent = origin.log.bodyBytesWritten(for: "/long.mp4")
        report.say("The process was killed when the origin had sent \(size(sent)).")
        let leftovers = files.names.filter { $0.contains("long") }
        report.claim("neither the file nor a temporary is there", holds: leftovers.isEmpty)
        let outcome = try await get("/long.mp4", into: "long.mp4")
        let told = outcome.report
        report.claim("the second get succeeded", holds: outcome.succeeded)
        let ranges = origin.log.exchanges(for: "/long.mp4").dropFirst().map { $0.fields[.range] }
        report.claim(
            "it asked for the rest only: \(ranges.map { $0 ?? "everything" }.joined(separator: ", "))",
            holds: !ranges.isEmpty && !ranges.contains(nil)
        )
        report.claim(
            "\(size(told?.fromCache ?? 0)) came from the killed process's blocks",
            holds: (told?.fromCache ?? 0) > 0
        )
        let twice = origin.log.bodyBytesWritten(for: "/long.mp4") - film.length
        report.claim("only \(size(twice)) were fetched twice", holds: twice >= 0 && twice < 4 << 20)
        report.claim(
            "the file equals what the origin has",
            holds: try equals("long.mp4", resource: film)
        )
    }

    mutating func sixOfThirty() async throws {
        report.heading("5. Thirty files are wanted at once: six downloads run at a time.")
        let targets = (1...30).map { "/clip-\($0).mp4" }
        for (index, target) in targets.enumerated() {
            let clip = OriginResource.generated(
                length: Self.mebibyte,
                seed: 100 + UInt64(index),
                cacheControl: Self.freshForAnHour
            )
            origin.serve(target, clip, OriginScript(.throttled(bytesPerSecond: 8 << 20)))
        }
        let before = origin.log.exchanges.count
        let urls = targets.map { origin.url($0) }
        let outcome = try await program.run(["prefetch"] + urls + ["--json"])
        let log = origin.log
        report.claim(
            "all thirty were fetched",
            holds: outcome.succeeded && outcome.lines.count == 30
        )
        report.claim(
            "\(log.openResponsesHighWaterMark) downloads ran at the same time at most",
            holds: log.openResponsesHighWaterMark == 6
        )
        report.claim("each file was asked for once", holds: log.exchanges.count - before == 30)
    }

    mutating func revalidation() async throws {
        report.heading(
            "6. A playlist must be validated before each use: unchanged, it costs no body."
        )
        origin.serve("/live.m3u8", .text("#EXTM3U\n", cacheControl: "no-cache"))
        let first = try await get("/live.m3u8", into: "live-1.m3u8")
        let second = try await get("/live.m3u8", into: "live-2.m3u8")
        report.claim("the first get is from the origin", holds: first.report?.source == "origin")
        report.claim("the second is revalidated", holds: second.report?.source == "revalidated")
        let statuses = origin.log.exchanges(for: "/live.m3u8").map(\.status)
        report.claim("the origin answered 200, then 304", holds: statuses == [200, 304])
        origin.serve("/live.m3u8", .text("#EXTM3U\n#EXT-X-ENDLIST\n", cacheControl: "no-cache"))
        let third = try await get("/live.m3u8", into: "live-3.m3u8")
        report.claim("once it changes, the change arrives", holds: third.report?.source == "origin")
        let texts = try ["live-1.m3u8", "live-2.m3u8", "live-3.m3u8"].map { try files.read($0) }
        report.claim(
            "all three are what the origin had at the time",
            holds: texts == ["#EXTM3U\n", "#EXTM3U\n", "#EXTM3U\n#EXT-X-ENDLIST\n"]
        )
    }
}
