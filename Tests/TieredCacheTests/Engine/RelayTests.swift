import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct RelayTests {
    @Test("A fresh answer comes from the cache with its age, and says so")
    func freshAnswersAreReused() async throws {
        try await RelayFixture.run { fixture in
            let answer = fixture.answer(200, [.cacheControl: "max-age=60"], body: "hello")
            let first = try await fixture.ask(answer)
            #expect(first.body == "hello")
            #expect(first.fields[.contentLength] == "5")
            #expect(first.cacheStatus.fieldValue == "TieredCache; fwd=uri-miss; stored")
            fixture.time.advance(by: .seconds(10))
            let second = try await fixture.ask()
            #expect(second.isHit)
            #expect(second.body == "hello")
            #expect(second.fields[.age] == "10")
            #expect(second.fields[.date] == first.fields[.date])
            let status = second.fields[HTTPField.Name("Cache-Status")!]
            #expect(status == "TieredCache; hit; ttl=50; detail=disk")
        }
    }

    @Test(
        "Any status with explicit freshness is stored with its body",
        arguments: [200, 203, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 503, 599]
    )
    func everyStatusIsStored(status: Int) async throws {
        try await RelayFixture.run { fixture in
            let fields: HTTPFields = [.cacheControl: "max-age=60", .location: "/elsewhere"]
            let first = try await fixture.ask(fixture.answer(status, fields, body: "words"))
            #expect(first.status == status)
            #expect(first.body == "words")
            let second = try await fixture.ask()
            #expect(second.isHit)
            #expect(second.status == status)
            #expect(second.body == "words")
            #expect(second.fields[.location] == "/elsewhere")
            fixture.time.advance(by: .seconds(61))
            let third = try await fixture.ask(fixture.answer(status, fields, body: "other"))
            #expect(third.body == "other")
        }
    }

    @Test("A coded body comes through and is stored as it is")
    func codedBodiesAreKept() async throws {
        try await RelayFixture.run { fixture in
            let fields: HTTPFields = [
                .cacheControl: "max-age=60", .contentEncoding: "gzip", .vary: "Accept-Encoding",
            ]
            let first = try await fixture.ask(
                .get,
                [.acceptEncoding: "gzip"],
                fixture.answer(200, fields, body: "not really gzip")
            )
            #expect(first.requests.first?.headerFields[.acceptEncoding] == "gzip")
            let second = try await fixture.ask(.get, [.acceptEncoding: "gzip"])
            #expect(second.isHit)
            #expect(second.body == "not really gzip")
            #expect(second.fields[.contentEncoding] == "gzip")
            // The application takes no coded bytes, so for it nothing is stored.
            var request = try CacheRequest("http://origin.example/a")
            request.fields[.acceptEncoding] = "gzip"
            #expect(await fixture.cache.contains(request) == false)
        }
    }

    @Test("Fields of the connection are neither forwarded nor stored")
    func connectionFieldsStay() async throws {
        try await RelayFixture.run { fixture in
            let mine = HTTPField.Name("X-Mine")!
            let answer = fixture.answer(
                200,
                [.cacheControl: "max-age=60", .connection: "X-Mine", mine: "1"]
            )
            let fields: HTTPFields = [
                .connection: "close, X-Mine", mine: "1", .te: "trailers", .userAgent: "player",
            ]
            let first = try await fixture.ask(.get, fields, answer)
            let sent = try #require(first.requests.first?.headerFields)
            #expect(sent[mine] == nil && sent[.connection] == nil && sent[.te] == nil)
            #expect(sent[.userAgent] == "player")
            #expect(first.fields[mine] == nil && first.fields[.connection] == nil)
            #expect(try await fixture.ask().fields[mine] == nil)
        }
    }

    @Test("A field that must not be stored reaches the client that asked first")
    func qualifiedFieldsComeThroughOnce() async throws {
        try await RelayFixture.run { fixture in
            let fields: HTTPFields = [
                .cacheControl: "max-age=60, no-cache=\"Set-Cookie\"", .setCookie: "a=b",
            ]
            let first = try await fixture.ask(fixture.answer(200, fields))
            #expect(first.fields[.setCookie] == "a=b")
            let second = try await fixture.ask()
            #expect(second.isHit)
            #expect(second.fields[.setCookie] == nil)
        }
    }

    @Test("Only the same target is answered, and of the methods only GET and HEAD")
    func targetAndMethod() async throws {
        try await RelayFixture.run { fixture in
            let fields: HTTPFields = [.cacheControl: "max-age=60"]
            _ = try await fixture.ask(fixture.answer(200, fields, body: "a"))
            for path in ["/A", "/a/", "/a?", "/a?b", "/%61", "//a"] {
                let other = try await fixture.ask(path: path, fixture.answer(404, body: path))
                #expect(!other.isHit && other.body == path)
            }
            for method: HTTPRequest.Method in [.post, .put, .delete, .options] {
                let other = try await fixture.ask(method, fixture.answer(405, body: "no"))
                #expect(!other.isHit && other.status == 405)
            }
            #expect(try await fixture.ask().body == "a")
            #expect(try await fixture.ask(.head).isHit)
        }
    }

    @Test("Directives are passed through both ways, known and unknown, from the store too")
    func directivesArePassedThrough() async throws {
        try await RelayFixture.run { fixture in
            let control = "max-age=60, no-transform, x-odd=\"a, b\""
            let request: HTTPFields = [.cacheControl: "max-stale=5, x-mine"]
            let first = try await fixture.ask(
                .get,
                request,
                fixture.answer(200, [.cacheControl: control])
            )
            let sent = first.requests.first?.headerFields
            #expect(sent?[.cacheControl] == request[.cacheControl])
            #expect(first.fields[.cacheControl] == control)
            let second = try await fixture.ask()
            #expect(second.isHit && second.fields[.cacheControl] == control)
        }
    }

    @Test("only-if-cached is answered with 504 where nothing usable is stored")
    func onlyIfCached() async throws {
        try await RelayFixture.run { fixture in
            let oic: HTTPFields = [.cacheControl: "only-if-cached"]
            let missing = try await fixture.ask(.get, oic)
            #expect(missing.isHit && missing.status == 504)
            _ = try await fixture.ask(fixture.answer(200, [.cacheControl: "max-age=60"]))
            #expect(try await fixture.ask(.get, oic).status == 200)
            fixture.time.advance(by: .seconds(61))
            let stale = try await fixture.ask(.get, oic)
            #expect(stale.isHit && stale.status == 504)
        }
    }

    @Test("An origin that fails is an error, or what is stored stale where that is allowed")
    func staleOnFailure() async throws {
        try await RelayFixture.run { fixture in
            await #expect { try await fixture.ask() } throws: { error in
                (error as? CacheError)?.code == .originFailed
            }
            _ = try await fixture.ask(fixture.answer(200, [.cacheControl: "max-age=1"]))
            fixture.time.advance(by: .seconds(5))
            let stale = try await fixture.ask()
            #expect(stale.status == 200 && stale.body == "body")
            #expect(stale.fields[.age] == "5")
            _ = try await fixture.ask(
                fixture.answer(200, [.cacheControl: "max-age=1, must-revalidate"])
            )
            fixture.time.advance(by: .seconds(5))
            await #expect(throws: CacheError.self) { try await fixture.ask() }
        }
    }

    @Test("Validation that ends in a 503 is as good as no answer, unless staleness is forbidden")
    func errorsOnValidation() async throws {
        try await RelayFixture.run { fixture in
            _ = try await fixture.ask(fixture.answer(200, [.cacheControl: "max-age=1"]))
            fixture.time.advance(by: .seconds(5))
            let stale = try await fixture.ask(fixture.answer(503, body: "bad"))
            #expect(stale.status == 200 && stale.body == "body")
            #expect(stale.cacheStatus.forwardStatus == 503)
            let gone = try await fixture.ask(fixture.answer(404, body: "gone"))
            #expect(gone.status == 404 && gone.body == "gone")
            let strict: HTTPFields = [.cacheControl: "max-age=1, must-revalidate"]
            _ = try await fixture.ask(path: "/b", fixture.answer(200, strict))
            fixture.time.advance(by: .seconds(5))
            let error = try await fixture.ask(path: "/b", fixture.answer(503, body: "bad"))
            #expect(error.status == 503 && error.body == "bad")
        }
    }

    @Test("A shared cache keeps private answers and credentials apart, and obeys s-maxage")
    func sharedRules() async throws {
        let shared: (inout MediaCache.Configuration) -> Void = { $0.isShared = true }
        try await RelayFixture.run(shared) { fixture in
            let authorized: HTTPFields = [.authorization: "x"]
            let cases: [(HTTPFields, String, Bool)] = [
                ([:], "private, max-age=60", false),
                ([:], "max-age=60", true),
                (authorized, "max-age=60", false),
                (authorized, "max-age=60, public", true),
                (authorized, "max-age=60, must-revalidate", true),
                (authorized, "s-maxage=60", true),
                ([:], "max-age=60, s-maxage=0", false),
                ([:], "max-age=0, s-maxage=60", true),
            ]
            for (number, (fields, control, isReused)) in cases.enumerated() {
                let path = "/\(number)"
                let target = try TargetURI("http://origin.example\(path)")
                fixture.prepare(fixture.answer(200, [.cacheControl: control]))
                let first = try await fixture.cache.relay(
                    RelayRequest(target: target, fields: fields)
                )
                _ = try await first.body.collect()
                let second = try await fixture.ask(path: path, fixture.answer(200))
                #expect(second.isHit == isReused, "\(control), \(fields)")
            }
        }
    }

    @Test("A stale answer under s-maxage or proxy-revalidate is not served by a shared cache")
    func sharedRulesForStale() async throws {
        let shared: (inout MediaCache.Configuration) -> Void = { $0.isShared = true }
        for control in ["s-maxage=1", "max-age=1, proxy-revalidate"] {
            try await RelayFixture.run(shared) { fixture in
                _ = try await fixture.ask(fixture.answer(200, [.cacheControl: control]))
                fixture.time.advance(by: .seconds(5))
                await #expect(throws: CacheError.self) { try await fixture.ask() }
            }
        }
    }

    @Test("stale-if-error puts what is stored in the place of a 503")
    func staleIfError() async throws {
        try await RelayFixture.run { fixture in
            let fields: HTTPFields = [.cacheControl: "max-age=1, stale-if-error=60"]
            _ = try await fixture.ask(fixture.answer(200, fields, body: "good"))
            fixture.time.advance(by: .seconds(5))
            let stale = try await fixture.ask(fixture.answer(503, body: "bad"))
            #expect(stale.status == 200 && stale.body == "good")
            #expect(stale.cacheStatus.forwardStatus == 503)
            fixture.time.advance(by: .seconds(100))
            let error = try await fixture.ask(fixture.answer(503, body: "bad"))
            #expect(error.status == 503 && error.body == "bad")
        }
    }
}
