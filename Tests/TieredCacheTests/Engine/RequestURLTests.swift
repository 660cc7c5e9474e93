import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Requests made from a `URL`, which never fails: calls fail where the URL cannot be used.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct RequestURLTests {
    typealias Call = @Sendable (MediaCache, CacheRequest) async throws(CacheError) -> Void

    private static let calls: [(name: String, call: Call)] = [
        (
            "response",
            { (cache, request) throws(CacheError) in _ = try await cache.response(for: request) }
        ),
        ("data", { (cache, request) throws(CacheError) in _ = try await cache.data(for: request) }),
        (
            "bytes",
            { (cache, request) throws(CacheError) in _ = try await cache.bytes(for: request) }
        ),
        (
            "reader",
            { (cache, request) throws(CacheError) in _ = try await cache.reader(for: request) }
        ),
        (
            "prefetch",
            { (cache, request) throws(CacheError) in _ = try await cache.prefetch(request) }
        ),
        (
            "operation",
            { (cache, request) throws(CacheError) in
                _ = try await cache.operation(for: request).response()
            }
        ),
        (
            "start",
            { (cache, request) throws(CacheError) in
                _ = try await cache.downloads.start(request)
            }
        ),
        (
            "store",
            { (cache, request) throws(CacheError) in
                try await cache.store(Data("a".utf8), for: request)
            }
        ),
        ("remove", { (cache, request) throws(CacheError) in _ = try await cache.remove(request) }),
        (
            "setPinned",
            { (cache, request) throws(CacheError) in
                _ = try await cache.setPinned(true, for: request)
            }
        ),
        (
            "entry",
            { (cache, request) throws(CacheError) in _ = try await cache.entry(for: request) }
        ),
        (
            "fileURL",
            { (cache, request) throws(CacheError) in
                _ = try await cache.fileURL(for: request)
            }
        ),
        (
            "recordedEvents",
            { (cache, request) throws(CacheError) in
                _ = try await cache.recordedEvents(for: request)
            }
        ),
    ]

    @Test(
        "A URL that cannot be used fails each call in words, and nothing is asked or stored",
        arguments: ["file:///etc/passwd", "ftp://user:secret@example.com/a", "a/b", "http:///x"],
        [CachePolicy.protocolDefault, .reload, .cacheOnly]
    )
    func unusable(text: String, policy: CachePolicy) async throws {
        let url = try #require(URL(string: text))
        try await CacheFixture.run { fixture in
            let transport = ScriptedTransport([])
            try await fixture.withCache {
                $0.transport = transport
            } _: { cache in
                var request = CacheRequest(url)
                request.policy = policy
                for (name, call) in Self.calls {
                    do throws(CacheError) {
                        try await call(cache, request)
                        Issue.record("\(name) returned")
                    } catch {
                        #expect(error.code == .invalidURL, "\(name)")
                        #expect(!error.description.contains("secret"), "\(name)")
                    }
                }
                #expect(cache.cachedData(for: request) == nil)
                #expect(await !cache.contains(request))
                let (entries, jobs) = try await (cache.entries(), cache.downloads.all())
                #expect(entries.isEmpty && jobs.isEmpty)
                await #expect(throws: CacheError.self) { try await cache.data(from: url) }
                await #expect(throws: CacheError.self) { try await cache.response(from: url) }
            }
            #expect(transport.requests.isEmpty)
        }
    }

    @Test("A URL that cannot be used is not answered from what its key names")
    func unusableWithKey() async throws {
        let url = try #require(URL(string: "file:///film"))
        try await CacheFixture.run { fixture in
            try await fixture.withCache { cache in
                let film = try CacheRequest(fixture.origin.url("/film"), key: "film")
                try await cache.store(Data([1, 2, 3]), for: film)
                #expect(cache.cachedData(for: film) == Data([1, 2, 3]))
                let unusable = CacheRequest(url, key: "film")
                #expect(unusable.key == film.key && !unusable.isCacheable)
                #expect(cache.cachedData(for: unusable) == nil)
                #expect(await !cache.contains(unusable))
                #expect(await cache.noteUnfinished(unusable) == nil)
            }
        }
    }

    @Test("A URL is asked for as it stands, by its own overloads too")
    func usable() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 70_000, cacheControl: "max-age=600")
            fixture.origin.serve("/film", film)
            let url = try #require(URL(string: fixture.origin.url("/film")))
            try await fixture.withCache { cache in
                #expect(CacheRequest(url).key == (try fixture.request("/film")).key)
                let response = try await cache.response(from: url)
                #expect(response.offset == 0 && response.length == 70_000)
                #expect(try await firstDifference(response.body.collect(), film.allBytes) == nil)
                #expect(try await firstDifference(cache.data(from: url), film.allBytes) == nil)
                var part = CacheRequest(url)
                part.range = .bounded(10..<30)
                let answer = try await cache.response(for: part)
                #expect(answer.offset == 10 && answer.length == 20)
            }
            #expect(fixture.origin.log.exchanges.count == 1)
        }
    }

    @Test("A directory is a file URL; another URL is refused")
    func directories() throws {
        let url = try #require(URL(string: "https://example.com/cache"))
        let error = #expect(throws: CacheError.self) {
            try MediaCache.Configuration(directory: url).validate()
        }
        #expect(error?.code == .invalidArgument)
        let configuration = MediaCache.Configuration(directory: URL(filePath: "/a b/c%20d/"))
        #expect(configuration.path == "/a b/c%20d")
        #expect(configuration.directory?.path(percentEncoded: false) == "/a b/c%20d/")
    }

    @Test("Readers return bytes without a buffer of the caller's")
    func reading() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 70_000, cacheControl: "max-age=600")
            fixture.origin.serve("/film", film)
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: fixture.request("/film"))
                var bytes = Data()
                while case let more = try await reader.read(count: 9999), !more.isEmpty {
                    #expect(more.count <= 9999)
                    bytes += more
                }
                #expect(firstDifference(bytes, film.allBytes) == nil)
                #expect(reader.position == 70_000)
                let middle = try await reader.read(at: 69_990, count: .max)
                #expect(firstDifference(middle, film.bytes(69_990..<70_000)) == nil)
                #expect(try await reader.read(at: 70_000, count: 1).isEmpty)
                for count in [0, -1, .min] {
                    let error = await #expect(throws: CacheError.self) {
                        try await reader.read(at: 0, count: count)
                    }
                    #expect(error?.code == .invalidArgument)
                }
                let blocking = cache.blockingReader(for: try fixture.request("/film"))
                let piece = try await IOExecutor(threads: 1).run { () throws(CacheError) in
                    try blocking.read(at: 10, count: 20)
                }
                #expect(firstDifference(piece, film.bytes(10..<30)) == nil)
            }
        }
    }
}
