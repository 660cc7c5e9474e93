import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct RelayedMethodTests {
    private static let fresh: HTTPFields = [.cacheControl: "max-age=60"]

    private static func upload(_ text: String) -> UploadBody {
        let rest = Guarded<[UInt8]?>(Array(text.utf8))
        return UploadBody(length: nil) { rest.withLock { $0.take() }.map { BodyChunk($0) } }
    }

    @Test(
        "A change through the cache makes what is stored about the target unusable",
        arguments: ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"]
    )
    func unsafeMethodsInvalidate(method: String) async throws {
        let method = try #require(HTTPRequest.Method(method))
        try await RelayFixture.run { fixture in
            _ = try await fixture.ask(fixture.answer(200, Self.fresh, body: "old"))
            let failed = try await fixture.ask(
                method,
                body: Self.upload("change"),
                fixture.answer(500, body: "no")
            )
            #expect(failed.status == 500 && failed.body == "no")
            #expect(failed.cacheStatus.forwardReason == .method)
            #expect(try await fixture.ask().isHit)
            _ = try await fixture.ask(
                method,
                body: Self.upload("change"),
                fixture.answer(200, body: "yes")
            )
            #expect(
                fixture.transport.uploads.map { String(decoding: $0, as: UTF8.self) }
                    == ["change", "change"]
            )
            let new = try await fixture.ask(fixture.answer(200, Self.fresh, body: "new"))
            #expect(new.requests.count == 1 && new.body == "new")
        }
    }

    @Test("Location and Content-Location of the same origin are invalidated too, others are not")
    func locationsAreInvalidated() async throws {
        try await RelayFixture.run { fixture in
            for path in ["/x", "/y", "/z"] {
                _ = try await fixture.ask(path: path, fixture.answer(200, Self.fresh))
            }
            _ = try await fixture.ask(
                .post,
                fixture.answer(
                    201,
                    [.location: "/x", .contentLocation: "http://origin.example/y"]
                )
            )
            _ = try await fixture.ask(
                .post,
                fixture.answer(201, [.location: "http://other.example/z"])
            )
            #expect(try await fixture.ask(path: "/x", fixture.answer(200)).requests.count == 1)
            #expect(try await fixture.ask(path: "/y", fixture.answer(200)).requests.count == 1)
            #expect(try await fixture.ask(path: "/z").isHit)
        }
    }

    @Test("The answer to a POST never answers GET, whatever it says; it invalidates")
    func postAnswersNoGet() async throws {
        try await RelayFixture.run { fixture in
            let fields: HTTPFields = [.cacheControl: "max-age=60", .contentLocation: "/a"]
            _ = try await fixture.ask(fixture.answer(200, fields, body: "got"))
            let post = try await fixture.ask(
                .post,
                body: Self.upload("question"),
                fixture.answer(200, fields, body: "answer")
            )
            #expect(post.body == "answer")
            let get = try await fixture.ask(fixture.answer(200, fields, body: "new"))
            #expect(!get.isHit && get.body == "new")
            #expect(try await fixture.ask().body == "new")
        }
    }

    @Test("A request that the origin may have acted on is not sent again")
    func unsafeRequestsAreSentOnce() async throws {
        try await RelayFixture.run { fixture in
            await #expect(throws: CacheError.self) {
                try await fixture.ask(.post, body: Self.upload("x"))
            }
            #expect(fixture.transport.requests.count == 1)
            await #expect(throws: CacheError.self) { try await fixture.ask(.get) }
            // A GET is safe to repeat, once.
            #expect(fixture.transport.requests.count == 3)
        }
    }
}
