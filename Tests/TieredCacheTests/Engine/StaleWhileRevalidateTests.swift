import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct StaleWhileRevalidateTests {
    private static let control = "max-age=1, stale-while-revalidate=60"

    private static func answer(
        _ fixture: RelayFixture,
        _ status: Int,
        _ body: String = "new",
        delay: Duration
    ) -> ScriptedResponse {
        var answer = fixture.answer(
            status,
            [.cacheControl: control, .eTag: "\"\(body)\""],
            body: body
        )
        answer.headDelay = delay
        return answer
    }

    @Test("However many read what is stale, it is validated once, and no reader waits")
    func oneValidation() async throws {
        try await RelayFixture.run { fixture in
            _ = try await fixture.ask(Self.answer(fixture, 200, "old", delay: .zero))
            fixture.time.advance(by: .seconds(5))
            let events = fixture.cache.events()
            fixture.prepare(Self.answer(fixture, 200, delay: .seconds(3)))
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        let target = try TargetURI("http://origin.example/a")
                        let response = try await fixture.cache.relay(RelayRequest(target: target))
                        return String(decoding: try await response.body.collect(), as: UTF8.self)
                    }
                }
                for try await body in group { #expect(body == "old") }
            }
            await fixture.transport.waitForRequests(2)
            await fixture.time.waitForSleeper(within: .seconds(3))
            #expect(fixture.transport.requests.count == 2)
            #expect(fixture.transport.requests.count == 2)
            let tag = fixture.transport.requests.last?.head.headerFields[.ifNoneMatch]
            #expect(tag == "\"old\"")
            fixture.time.advance(by: .seconds(3))
            for await event in events {
                if case .downloadFinished = event.kind { break }
            }
            // With the three seconds that it took it is stale at once, and validated once more.
            let stored = try await fixture.ask()
            #expect(stored.cacheStatus.isHit && stored.body == "new")
        }
    }

    @Test("A validation in the background that fails leaves what is stale to the next request")
    func failure() async throws {
        try await RelayFixture.run { fixture in
            _ = try await fixture.ask(Self.answer(fixture, 200, "old", delay: .zero))
            fixture.time.advance(by: .seconds(5))
            let events = fixture.cache.events()
            #expect(try await fixture.ask().body == "old")
            for await event in events {
                if case .downloadFailed = event.kind { break }
            }
            // Perhaps this one begins a validation of its own; what it brings is the same.
            let newest = Self.answer(fixture, 200, "newest", delay: .zero)
            let again = try await fixture.ask(newest, newest)
            #expect(again.body == "old")
            // While it ran, the time that passes would end it, and the next request has joined it.
            while fixture.cache.responder.isRevalidating { await Task.yield() }
            fixture.time.advance(by: .seconds(100))
            // The window is over: now it is waited for.
            #expect(try await fixture.ask(newest, newest).body == "newest")
        }
    }

    @Test("A shutdown ends the validation that is under way")
    func shutdown() async throws {
        let fixture = try RelayFixture()
        _ = try await fixture.ask(Self.answer(fixture, 200, "old", delay: .zero))
        fixture.time.advance(by: .seconds(5))
        fixture.prepare(Self.answer(fixture, 200, delay: .seconds(3_600)))
        let target = try TargetURI("http://origin.example/a")
        let response = try await fixture.cache.relay(RelayRequest(target: target))
        #expect(String(decoding: try await response.body.collect(), as: UTF8.self) == "old")
        await fixture.transport.waitForRequests(2)
        await fixture.cache.shutdown()
        #expect(fixture.transport.requests.count == 2)
    }
}
