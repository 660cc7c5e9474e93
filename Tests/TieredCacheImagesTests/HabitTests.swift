import Foundation
import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheFoundation
import TieredCacheImages
import TieredCacheTesting

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What applications have always done with their own caches, each by its name.
///
/// One after the other: the cache of a protocol class is one per process.
@Suite("Habits of applications", .serialized, .tags(.realTime), .timeLimit(.minutes(2)))
struct HabitTests {
    /// A session that is answered from the cache, beside a clock that stands still.
    private static func run(
        _ body: (ImageFixture, URLSession, ManualTimeSource) async throws -> Void
    ) async throws {
        let time = ManualTimeSource()
        try await ImageFixture.run(time: time) { fixture in
            TieredURLProtocol.use(fixture.cache)
            defer { TieredURLProtocol.use(nil) }
            let configuration = URLSessionConfiguration.ephemeral
            configuration.answerFromCache()
            let session = URLSession(configuration: configuration)
            try await body(fixture, session, time)
            session.finishTasksAndInvalidate()
        }
    }

    private static func load(
        _ path: String,
        _ session: URLSession,
        _ fixture: ImageFixture
    ) async throws -> (text: String, status: Int?) {
        let url = try #require(URL(string: fixture.origin.url(path)))
        let (bytes, response) = try await session.data(from: url)
        return (String(decoding: bytes, as: UTF8.self), (response as? HTTPURLResponse)?.statusCode)
    }

    @Test("A POST is cached under the MD5 of URL and parameters")
    func post() async throws {
        try await Self.run { fixture, _, _ in
            let url = fixture.origin.url("/search")
            fixture.origin.serve("/search", .text("found", cacheControl: "max-age=60"))
            for (parameters, requests) in [("q=a", 1), ("q=a", 1), ("q=b", 2)] {
                var request = try CacheRequest(url, key: "\(url)?\(parameters)", method: .post)
                request.body = Data(parameters.utf8)
                let bytes = try await fixture.cache.data(for: request)
                #expect(bytes == Data("found".utf8))
                #expect(fixture.requests(for: "/search") == requests)
                let file = try #require(try await fixture.cache.fileURL(for: request))
                #expect(file.lastPathComponent.hasPrefix("\(request.key.digest)"))
            }
        }
    }

    @Test("An expiry of the application's own")
    func expiry() async throws {
        try await Self.run { fixture, _, time in
            struct Profile: Hashable { let name: String }
            let profiles = fixture.cache.memoryView(of: Profile.self, named: "profile") { _ in 1 }
            let key = CacheKey(explicit: "profile 7")
            profiles.insert(Profile(name: "a"), forKey: key, expiresAfter: .seconds(60))
            time.advance(by: .seconds(59))
            #expect(profiles.value(forKey: key)?.name == "a")
            time.advance(by: .seconds(1))
            #expect(profiles.value(forKey: key) == nil)
        }
    }

    @Test("One request in flight for a URL")
    func inFlight() async throws {
        try await Self.run { fixture, session, _ in
            let gate = OriginGate()
            fixture.serve("/a", .first(1, .wait(for: gate, after: 1)))
            try await withThrowingTaskGroup { group in
                for _ in 0..<8 {
                    group.addTask { try await Self.load("/a", session, fixture).text }
                }
                await fixture.origin.waitUntil { $0.bodyBytesWritten > 0 }
                gate.open()
                for try await text in group { #expect(text == "image /a") }
            }
            #expect(fixture.requests(for: "/a") == 1)
        }
    }

    @Test(
        "Last-Modified and ETag are sent back, and a 304 is the stored body",
        arguments: [HTTPField.Name.ifModifiedSince, .ifNoneMatch]
    )
    func conditions(field: HTTPField.Name) async throws {
        try await Self.run { fixture, session, time in
            var resource = OriginResource.text("image", cacheControl: "max-age=60")
            if field == .ifModifiedSince {
                resource.entityTag = .none
                resource.lastModified = "Sat, 01 Jan 2022 00:00:00 GMT"
            }
            fixture.origin.serve("/a", resource)
            #expect(try await Self.load("/a", session, fixture) == ("image", 200))
            time.advance(by: .seconds(61))
            #expect(try await Self.load("/a", session, fixture) == ("image", 200))
            let second = try #require(fixture.origin.log.exchanges.last)
            #expect(fixture.requests(for: "/a") == 2 && second.fields[field] != nil)
            #expect(second.bodyBytesWritten == 0)
        }
    }

    @Test("An image beside a page: what the protocol has loaded, the pipeline need not")
    func sideLoad() async throws {
        try await Self.run { fixture, session, _ in
            fixture.serve("/a")
            #expect(try await Self.load("/a", session, fixture).status == 200)
            let picture = try await fixture.pipeline.picture(for: fixture.request("/a"))
            #expect(picture.text == "image /a" && fixture.requests(for: "/a") == 1)
        }
    }
}
