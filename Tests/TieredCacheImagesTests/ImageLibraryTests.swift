import Foundation
import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheFoundation
import TieredCacheImageLibraries
import TieredCacheImages
import TieredCacheTesting

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The adapters of Examples/ImageLibraries, and what they use.
@Suite("Image libraries", .tags(.realTime), .timeLimit(.minutes(2)))
struct ImageLibraryTests {
    @Test("Bytes of a library are kept under its keys, apart from all else")
    func store() async throws {
        try await ImageFixture.run { fixture in
            fixture.serve("/a")
            let request = try fixture.request("/a").bytes
            _ = try await fixture.cache.data(for: request)
            let (one, two) = (
                ImageByteStore(fixture.cache), ImageByteStore(fixture.cache, named: "other")
            )
            let bytes = Data("one".utf8)
            try await Self.onThread {
                one.store(bytes, forKey: "k")
                two.store(Data("two".utf8), forKey: "k")
                #expect(one.data(forKey: "k") == bytes && one.contains("k"))
                #expect(one.data(forKey: "x") == nil && !one.contains("x"))
                one.store(Data("new".utf8), forKey: "k")
                #expect(one.data(forKey: "k") == Data("new".utf8))
                one.store(bytes, forKey: "l")
                one.remove("l")
                #expect(!one.contains("l"))
                one.removeAll()
                #expect(!one.contains("k") && two.data(forKey: "k") == Data("two".utf8))
            }
            #expect(await fixture.cache.contains(request))
        }
    }

    @Test("Nuke: bytes come through the cache in pieces, with their response")
    func nukeLoader() async throws {
        try await ImageFixture.run { fixture in
            fixture.serve("/a")
            let url = try #require(URL(string: fixture.origin.url("/a")))
            var request = URLRequest(url: url)
            request.setValue("image/avif", forHTTPHeaderField: "Accept")
            for _ in 0..<2 {
                let loader = TieredDataLoader(cache: fixture.cache)
                let (pieces, response) = try await loader.loadData(with: request)
                var bytes = Data()
                for try await piece in pieces { bytes += piece }
                #expect(bytes == Data("image /a".utf8))
                #expect((response as? HTTPURLResponse)?.statusCode == 200)
                #expect(response.mimeType == "text/plain")
            }
            #expect(fixture.requests(for: "/a") == 1)
            #expect(fixture.origin.log.exchanges.last?.fields[.accept] == "image/avif")
        }
    }

    @Test("Nuke: processed images are kept in the cache")
    func nukeCache() async throws {
        try await ImageFixture.run { fixture in
            let cache = TieredDataCache(ImageByteStore(fixture.cache))
            try await Self.onThread {
                cache.storeData(Data("scaled".utf8), for: "k")
                while !cache.containsData(for: "k") { sched_yield() }
                #expect(cache.cachedData(for: "k") == Data("scaled".utf8))
                cache.removeData(for: "k")
                #expect(!cache.containsData(for: "k"))
            }
        }
    }

    @Test("SDWebImage: a load tells its progress, its end and its errors, and can be cancelled")
    func sdWebImage() async throws {
        try await ImageFixture.run { fixture in
            fixture.serve("/a")
            fixture.serve("/b", .first(1, .stall(after: 1)))
            let loader = TieredImageLoader(fixture.cache)
            #expect(!loader.canRequestImage(for: URL(string: "file:///x")))
            let loaded = try await Self.load("/a", loader, fixture)
            #expect(loaded.bytes == Data("image /a".utf8) && loaded.error == nil)
            #expect(loaded.progress.last == 8)
            let missing = try await Self.load("/missing", loader, fixture)
            let url = try #require(URL(string: fixture.origin.url("/missing")))
            let error = try #require(missing.error)
            #expect(loader.shouldBlockFailedURL(with: url, error: error))
            let cancelled = try await Self.load("/b", loader, fixture) { operation in
                await fixture.origin.waitUntil { $0.bodyBytesWritten(for: "/b") > 0 }
                operation.cancel()
            }
            #expect((cancelled.error as? CacheError)?.code == .cancelled)
        }
    }

    private struct Loaded: Sendable {
        var progress: [Int] = []
        var bytes: Data?
        var error: (any Error)?
    }

    private static func load(
        _ path: String,
        _ loader: TieredImageLoader,
        _ fixture: ImageFixture,
        _ body: (any SDWebImageOperation) async -> Void = { _ in }
    ) async throws -> Loaded {
        let (ends, end) = AsyncStream.makeStream(of: Loaded.self)
        let kept = Guarded(Loaded())
        let operation = loader.requestImage(
            with: URL(string: fixture.origin.url(path)),
            options: [],
            context: nil,
            progress: { received, _, _ in kept.withLock { $0.progress.append(received) } },
            completed: { image, bytes, error, _ in
                var loaded = kept.withLock { $0 }
                (loaded.bytes, loaded.error) = (bytes, error)
                #expect(image?.data == bytes)
                end.yield(loaded)
            }
        )
        await body(try #require(operation))
        for await loaded in ends { return loaded }
        throw CancellationError()
    }

    /// Runs what blocks on a thread of its own, as queues of such libraries do.
    private static func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }
}

/// Apart, and one after the other: the cache of a protocol class is one per process.
@Suite("Kingfisher", .serialized, .tags(.realTime), .timeLimit(.minutes(2)))
struct KingfisherTests {
    @Test("Its session is answered from the cache, where its requests let it")
    func session() async throws {
        try await ImageFixture.run { fixture in
            fixture.serve("/a")
            TieredURLProtocol.use(fixture.cache)
            defer { TieredURLProtocol.use(nil) }
            let downloader = ImageDownloader(name: "test")
            downloader.answerFromCache()
            let url = try #require(URL(string: fixture.origin.url("/a")))
            for _ in 0..<2 {
                let (bytes, _) = try await downloader.data(from: url, modifiedBy: CachedRequests())
                #expect(bytes == Data("image /a".utf8))
            }
            #expect(fixture.requests(for: "/a") == 1)
        }
    }
}
