import Foundation
import TestParts
import Testing
import TieredCache
import TieredCacheFoundation
import TieredCacheTesting

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What a completion handler gets.
struct Completion: Sendable {
    let data: Data?
    let response: URLResponse?
    let error: URLError?
}

extension SessionFixture {
    /// Another session with the cache.
    func otherSession(_ change: (URLSessionConfiguration) -> Void = { _ in }) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.answerFromCache()
        change(configuration)
        return URLSession(configuration: configuration)
    }

    func request(_ method: String, _ path: String) throws -> URLRequest {
        var request = try self.request(path)
        request.httpMethod = method
        return request
    }

    /// A task, not begun, and the call of its completion handler.
    func dataTask(_ request: URLRequest) -> (URLSessionDataTask, AsyncStream<Completion>) {
        let (calls, calling) = AsyncStream<Completion>.makeStream()
        let task = session.dataTask(with: request) { data, response, error in
            calling.yield(Completion(data: data, response: response, error: error as? URLError))
        }
        return (task, calls)
    }

    /// A path whose response waits for a gate.
    func serveLate(_ path: String) -> OriginGate {
        let gate = OriginGate()
        let late = OriginBehaviour.faithful.with { $0.gate = gate }
        origin.serve(path, .text("late"), OriginScript(late))
        return gate
    }

    /// Waits for what the delegate's queue has to do.
    func settle() async {
        await withCheckedContinuation { continuation in
            session.delegateQueue.addOperation { continuation.resume() }
        }
    }

    /// The tasks of the session that have begun, and have not ended.
    func tasks() async -> Set<URLSessionTask> {
        // Foundation removes a task that has ended while it reads the list, without a lock.
        await settle()
        return await withCheckedContinuation { continuation in
            session.getAllTasks { continuation.resume(returning: Set($0)) }
        }
    }
}

extension AsyncStream {
    /// The next element.
    var next: Element? {
        get async {
            for await element in self { return element }
            return nil
        }
    }
}

/// A delegate of a task that implements nothing.
private final class SilentDelegate: NSObject, URLSessionTaskDelegate {}

extension URLSessionTests {
    @Suite(
        "URLSession with a cache: what Foundation's own tests say of tasks and sessions",
        .tags(.realTime),
        .timeLimit(.minutes(2))
    )
    struct FoundationScenarioTests {
        @Test(
            "a delegate is told of the response, the body and the end, in this order",
            arguments: [("GET", 200), ("GET", 404), ("HEAD", 200), ("GET", 204)]
        )
        func order(method: String, status: Int) async throws {
            let delegate = CallDelegate()
            try await SessionFixture.run(delegate: delegate) { fixture in
                fixture.origin.serve("/a", OriginScript(.status(status)))
                let request = try fixture.request(method, "/a")
                let task = fixture.session.dataTask(with: request)
                task.delegate = SilentDelegate()
                task.resume()
                let hasBody = method == "GET" && status != 204
                let expected = ["response"] + (hasBody ? ["data"] : []) + ["end"]
                #expect(await delegate.calls(until: "end") == expected)
                #expect((task.response as? HTTPURLResponse)?.statusCode == status)
            }
        }

        @Test("the delegate of an asynchronous call is told of the response")
        func delegateOfCall() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("body"))
                let delegate = CallDelegate()
                let request = try fixture.request("/a")
                let (data, _) = try await fixture.session.data(for: request, delegate: delegate)
                #expect(data == Data("body".utf8))
                #expect(await delegate.calls(until: "response") == ["response"])
            }
        }

        @Test("a session that finishes lets its task end first, and then forgets its delegate")
        func finishTasksAndInvalidate() async throws {
            let delegate = CallDelegate()
            try await SessionFixture.run(delegate: delegate) { fixture in
                let gate = fixture.serveLate("/a")
                let request = try fixture.request("/a")
                fixture.session.dataTask(with: request) { data, _, _ in
                    delegate.note(data == Data("late".utf8) ? "body" : "no body")
                }.resume()
                fixture.session.finishTasksAndInvalidate()
                gate.open()
                #expect(await delegate.calls(until: "invalid") == ["body", "invalid"])
                await fixture.settle()
                #expect(fixture.session.delegate == nil)
            }
        }

        @Test("a session that is cancelled ends its tasks, and forgets its delegate")
        func invalidateAndCancel() async throws {
            let delegate = CallDelegate()
            try await SessionFixture.run(delegate: delegate) { fixture in
                let gate = fixture.serveLate("/a")
                let request = try fixture.request("/a")
                let (task, calls) = fixture.dataTask(request)
                task.resume()
                await fixture.origin.waitUntil { $0.exchanges(for: "/a").count == 1 }
                fixture.session.invalidateAndCancel()
                let end = await calls.next
                #expect(end?.error?.code == .cancelled)
                #expect(end?.error?.failingURL == request.url)
                #expect(end?.data == nil && end?.response == nil)
                task.resume()
                #expect(await fixture.tasks().isEmpty)
                #expect(await delegate.calls(until: "invalid") == ["invalid"])
                await fixture.settle()
                #expect(fixture.session.delegate == nil)
                gate.open()
            }
        }

        @Test("a session lists the tasks that have begun, suspended ones too")
        func allTasks() async throws {
            try await SessionFixture.run { fixture in
                let gate = fixture.serveLate("/a")
                let request = try fixture.request("/a")
                let (cancelled, calls) = fixture.dataTask(request)
                let (begun, _) = fixture.dataTask(request)
                let (twice, _) = fixture.dataTask(request)
                #expect(await fixture.tasks().isEmpty)
                cancelled.cancel()
                cancelled.resume()
                #expect(await calls.next?.error?.code == .cancelled)
                begun.resume()
                begun.suspend()
                twice.suspend()
                twice.resume()
                #expect(await fixture.tasks() == [begun])
                twice.resume()
                #expect(await fixture.tasks() == [begun, twice])
                begun.cancel()
                twice.cancel()
                gate.open()
            }
        }

        @Test("tasks are listed by their kind, those past the cache too")
        func tasksByKind() async throws {
            try await SessionFixture.run { fixture in
                let gate = fixture.serveLate("/a")
                let (task, _) = fixture.dataTask(try fixture.request("/a"))
                let put = try fixture.request("PUT", "/a")
                let upload = fixture.session.uploadTask(with: put, from: Data("new".utf8))
                task.resume()
                upload.resume()
                await fixture.origin.waitUntil { $0.exchanges(for: "/a").count == 2 }
                let counts: [Int] = await withCheckedContinuation { continuation in
                    fixture.session.getTasksWithCompletionHandler {
                        continuation.resume(returning: [$0.count, $1.count, $2.count])
                    }
                }
                #expect(counts == [1, 1, 0])
                task.cancel()
                upload.cancel()
                gate.open()
            }
        }

        @Test("a task begins once it was resumed as often as suspended")
        func suspensions() async throws {
            try await SessionFixture.run { fixture in
                let gate = fixture.serveLate("/a")
                let (task, calls) = fixture.dataTask(try fixture.request("/a"))
                for _ in 0..<2 { task.suspend() }
                for _ in 0..<2 { task.resume() }
                #expect(task.state == .suspended)
                #expect(fixture.requests(for: "/a") == 0)
                for _ in 0..<3 { task.resume() }
                #expect(task.state == .running)
                gate.open()
                #expect(await calls.next?.data == Data("late".utf8))
                #expect(fixture.requests(for: "/a") == 1)
            }
        }

        @Test("a load that fails at once while its task is cancelled ends once")
        func failureWhileCancelled() async throws {
            let delegate = SessionDelegate()
            try await SessionFixture.run(delegate: delegate) { fixture in
                let request = try fixture.request("/a", .returnCacheDataDontLoad)
                let task = fixture.session.dataTask(with: request)
                task.resume()
                task.cancel()
                let code = await delegate.all.error?.code
                #expect(code == .cancelled || code == .resourceUnavailable)
                #expect(await fixture.tasks().isEmpty)
                #expect(delegate.completions == 1)
            }
        }

        @Test("many sessions at once, and many tasks of one, all get their response")
        func concurrency() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("all", cacheControl: "max-age=60"))
                let request = try fixture.request("/a")
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<10 {
                        group.addTask {
                            let session = fixture.otherSession()
                            let (data, _) = try await session.data(for: request)
                            #expect(data == Data("all".utf8))
                            session.finishTasksAndInvalidate()
                        }
                    }
                    try await group.waitForAll()
                }
                for _ in 0..<500 {
                    for _ in 0..<2 { fixture.dataTask(request).0.resume() }
                    #expect(try await fixture.load(request).text == "all")
                }
                #expect(fixture.requests(for: "/a") == 1)
            }
        }
    }
}
