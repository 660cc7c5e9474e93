import FoundationEssentials
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

/// The code of the tutorials' last steps, run; the files beside this one are links to it.
@Suite("Tutorials", .tags(.realTime), .timeLimit(.minutes(1)))
struct TutorialTests {
    private static let resources = FilePath(#filePath)
        .removingLastComponent().removingLastComponent().removingLastComponent()
        .removingLastComponent().appending("Sources/TieredCache/TieredCache.docc/Resources")

    private func lines(_ name: String) throws -> [Substring] {
        let url = URL(filePath: Self.resources.appending(name).string)
        return String(decoding: try Data(contentsOf: url), as: UTF8.self).split(separator: "\n")
    }

    @Test(
        "A step adds lines to the one before, so that all are as the last one",
        arguments: [
            ("gallery", 6), ("film", 5),
        ]
    )
    func steps(name: String, count: Int) throws {
        for number in 1..<count {
            var rest = try lines("\(name)-\(number + 1).swift")[...]
            for line in try lines("\(name)-\(number).swift") {
                let place = try #require(rest.firstIndex(of: line), "step \(number): \(line)")
                rest = rest[(place + 1)...]
            }
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.resources.string)
        #expect(names.filter { $0.hasPrefix("\(name)-") }.count == count)
    }

    private func run(_ body: (ScriptedOrigin, URL) async throws -> Void) async throws {
        let origin = try await ScriptedOrigin.start()
        let files = TemporaryDirectory()
        do {
            try await body(origin, URL(filePath: files.path.string, directoryHint: .isDirectory))
        } catch {
            Issue.record(error)
        }
        await origin.stop()
    }

    @Test("A gallery that works offline")
    func gallery() async throws {
        try await run { origin, directory in
            let urls = try ["/a", "/b", "/c"].map { path in
                origin.serve(path, .generated(length: 5000, cacheControl: "max-age=0"))
                return try #require(URL(string: origin.url(path)))
            }
            let gallery = try OfflineGallery(directory: directory)
            #expect(gallery.posterAtOnce(urls[0]) == nil)
            let poster = try await gallery.poster(urls[0])
            #expect(poster.count == 5000)
            let kept = try await gallery.keep([urls[0], urls[1]])
            #expect(kept == 2)
            await gallery.close()
            await origin.stop()

            let journey = try OfflineGallery(directory: directory)
            for (url, isStored) in zip(urls, [true, true, false]) {
                let found = try await journey.posterOffline(url)
                #expect((found?.count == 5000) == isStored)
            }
            try await journey.release(urls)
            let entry = try await journey.cache.entry(for: CacheRequest(urls[1]))
            #expect(entry?.isPinned == false)
            await journey.close()
        }
    }

    @Test("A film while it downloads")
    func film() async throws {
        try await run { origin, directory in
            let gate = OriginGate()
            let resource = OriginResource.generated(length: 24 << 20)
            origin.serve("/film", resource, .first(1, .wait(for: gate, after: 1 << 20)))
            let url = try #require(URL(string: origin.url("/film")))
            let body = try #require(resource.generatedBody)
            let cache = try MediaCache(MediaCache.Configuration(directory: directory))
            let film = WatchedFilm(url, cache: cache)

            // It plays while most of it is missing, and the viewer seeks meanwhile.
            var played: Int64 = 0
            let stored = try await film.play { chunk in
                #expect(body.matches([UInt8](chunk), at: played))
                played += Int64(chunk.count)
                guard played <= 256 << 10 else { return }
                let piece = try await film.piece(at: 16 << 20, count: 1000)
                #expect(body.matches([UInt8](piece), at: 16 << 20) && piece.count == 1000)
                let ranges = try await film.storedRanges()
                #expect(!ranges.isEmpty)
                gate.open()
            }
            #expect(played == 24 << 20 && stored >= 0)

            var fraction = 0.0
            try await film.finish { fraction = $0 }
            #expect(fraction == 1)
            let ranges = try await film.storedRanges()
            #expect(ranges == [0..<(24 << 20)])
            let end = try await film.piece(at: (24 << 20) - 10, count: 1000)
            #expect(end.count == 10)
            await cache.shutdown()
        }
    }
}
