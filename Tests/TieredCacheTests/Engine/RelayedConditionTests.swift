import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct RelayedConditionTests {
    private static let fresh: HTTPFields = [
        .cacheControl: "max-age=60", .eTag: "\"one\"",
        .lastModified: "Thu, 01 Jan 1998 00:00:00 GMT",
    ]

    @Test("A client that has the representation already gets a 304 from the cache")
    func notModified() async throws {
        try await RelayFixture.run { fixture in
            _ = try await fixture.ask(fixture.answer(200, Self.fresh))
            for condition: HTTPFields in [
                [.ifNoneMatch: "\"one\""], [.ifNoneMatch: "\"zero\", W/\"one\""],
                [.ifNoneMatch: "*"], [.ifModifiedSince: "Thu, 01 Jan 1998 00:00:00 GMT"],
            ] {
                let answer = try await fixture.ask(.get, condition)
                #expect(answer.isHit && answer.status == 304 && answer.body.isEmpty)
                #expect(answer.fields[.eTag] == "\"one\"")
                #expect(answer.fields[.contentLength] == nil)
            }
            let other = try await fixture.ask(.get, [.ifNoneMatch: "\"two\""])
            #expect(other.isHit && other.status == 200 && other.body == "body")
        }
    }

    @Test("A condition about something that is not stored goes to the origin as it is")
    func conditionsAreForwarded() async throws {
        try await RelayFixture.run { fixture in
            let condition: HTTPFields = [.ifNoneMatch: "\"x\""]
            let answer = try await fixture.ask(.get, condition, fixture.answer(304))
            #expect(answer.requests.first?.headerFields[.ifNoneMatch] == "\"x\"")
            #expect(answer.status == 304)
            // A 304 to the client's own condition is nothing to store.
            let second = try await fixture.ask(fixture.answer(200, Self.fresh))
            #expect(second.requests.count == 1)
            let match = try await fixture.ask(.get, [.ifMatch: "\"x\""], fixture.answer(412))
            #expect(match.status == 412)
            #expect(match.requests.first?.headerFields[.ifMatch] == "\"x\"")
        }
    }

    @Test("What is stale is validated with its own validators, and the client's are answered then")
    func validation() async throws {
        try await RelayFixture.run { fixture in
            _ = try await fixture.ask(fixture.answer(200, Self.fresh))
            fixture.time.advance(by: .seconds(61))
            let answer = try await fixture.ask(
                .get,
                [.ifNoneMatch: "\"client\""],
                fixture.answer(304, [.eTag: "\"one\"", .cacheControl: "max-age=60"])
            )
            #expect(answer.requests.first?.headerFields[.ifNoneMatch] == "\"one\"")
            #expect(answer.status == 200 && answer.body == "body")
            #expect(answer.cacheStatus.forwardStatus == 304)
            fixture.time.advance(by: .seconds(61))
            let same = try await fixture.ask(
                .get,
                [.ifNoneMatch: "\"one\""],
                fixture.answer(304, [.eTag: "\"one\"", .cacheControl: "max-age=60"])
            )
            #expect(same.status == 304)
            #expect(try await fixture.ask().isHit)
        }
    }

    @Test("A range is cut from what is stored, or refused where it does not exist")
    func ranges() async throws {
        try await RelayFixture.run { fixture in
            _ = try await fixture.ask(fixture.answer(200, Self.fresh, body: "0123456789"))
            for (range, status, body, contentRange) in [
                ("bytes=0-1", 206, "01", "bytes 0-1/10"), ("bytes=8-", 206, "89", "bytes 8-9/10"),
                ("bytes=-3", 206, "789", "bytes 7-9/10"),
                ("bytes=5-99", 206, "56789", "bytes 5-9/10"), ("bytes=10-", 416, "", "bytes */10"),
                ("bytes=0-1,4-5", 200, "0123456789", nil), ("lines=1-2", 200, "0123456789", nil),
            ] {
                let answer = try await fixture.ask(.get, [.range: range])
                #expect(answer.isHit && answer.status == status, "\(range)")
                #expect(firstDifference(answer.body, body) == nil, "\(range)")
                #expect(answer.fields[.contentRange] == contentRange, "\(range)")
                #expect(answer.fields[.contentLength] == String(body.utf8.count), "\(range)")
            }
            let same = try await fixture.ask(.get, [.range: "bytes=1-2", .ifRange: "\"one\""])
            #expect(same.status == 206 && same.body == "12")
            let other = try await fixture.ask(.get, [.range: "bytes=1-2", .ifRange: "\"two\""])
            #expect(other.status == 200 && other.body == "0123456789")
        }
    }

    @Test("A range that is not stored is fetched in whole blocks, and answered")
    func rangesThatAreNotStored() async throws {
        let origin = ScriptedOriginModel(length: 300_000)
        let model = Guarded(origin)
        let transport = ScriptedTransport { request, _ in model.withLock { $0.answer(request) } }
        let change: (inout MediaCache.Configuration) -> Void = { $0.transport = transport }
        try await RelayFixture.run(change) { fixture in
            let target = try TargetURI("http://origin.example/film")
            var request = RelayRequest(target: target, fields: [.range: "bytes=70000-70009"])
            let first = try await fixture.cache.relay(request)
            #expect(first.status == .partialContent)
            #expect(first.fields[.contentRange] == "bytes 70000-70009/300000")
            let expected = ScriptedOriginModel.bytes(version: 1, range: 70_000..<70_010)
            #expect(firstDifference(Array(try await first.body.collect()), expected) == nil)
            #expect(transport.requests.last?.head.headerFields[.range] == "bytes=65536-131071")
            // A suffix of what is not stored is asked for as it is.
            request.fields[.range] = "bytes=-10"
            let suffix = try await fixture.cache.relay(
                RelayRequest(
                    target: try TargetURI("http://origin.example/other"),
                    fields: request.fields
                )
            )
            #expect(suffix.status == .partialContent)
            #expect(suffix.fields[.contentRange] == "bytes 299990-299999/300000")
            #expect(try await suffix.body.collect().count == 10)
            #expect(transport.requests.last?.head.headerFields[.range] == "bytes=-10")
        }
    }

    @Test("HEAD is answered by what GET has stored, and its own answer freshens it")
    func head() async throws {
        try await RelayFixture.run { fixture in
            _ = try await fixture.ask(fixture.answer(200, Self.fresh))
            let stored = try await fixture.ask(.head)
            #expect(stored.isHit && stored.status == 200 && stored.body.isEmpty)
            #expect(stored.fields[.contentLength] == "4")
            fixture.time.advance(by: .seconds(61))
            var answer = fixture.answer(200, Self.fresh)
            answer.steps = []
            let asked = try await fixture.ask(.head, answer)
            #expect(asked.requests.map(\.method) == [.head])
            #expect(asked.status == 200 && asked.body.isEmpty)
            #expect(asked.fields[.contentLength] == "4")
            #expect(try await fixture.ask().isHit)
            // Another length: what is stored is not what the origin has.
            fixture.time.advance(by: .seconds(61))
            answer = fixture.answer(200, Self.fresh, body: "longer")
            answer.steps = []
            _ = try await fixture.ask(.head, answer)
            let again = try await fixture.ask(fixture.answer(200, Self.fresh, body: "longer"))
            #expect(again.requests.count == 1 && again.body == "longer")
        }
    }
}
