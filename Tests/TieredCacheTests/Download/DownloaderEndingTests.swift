import HTTPCaching
import HTTPTypes
import Synchronization
import Testing
import TieredCacheTesting

@testable import TieredCache

/// How downloads end, and what they do with responses of other kinds.
@Suite("Downloader: endings", .timeLimit(.minutes(10)))
struct DownloaderEndingTests: DownloaderSuite {
    @Test("Revalidation: 304 has no body, 200 is a new generation that then resumes plainly")
    func revalidation() async throws {
        let model = model()
        let transport = ScriptedTransport { request, _ in model.answer(request) }
        var plan = try plan()
        plan.conditionalFields = [.ifNoneMatch: try #require(model.entityTag)]
        let sink = RecordingSink()
        #expect(try await run(plan, into: sink, transport).end == .notModified)
        #expect(sink.snapshot.heads.map(\.kind) == [.notModified])

        var changed = ScriptedOriginModel(length: 3000, version: 2)
        changed.cutAfter = 1000
        let (first, rest) = (changed, ScriptedOriginModel(length: 3000, version: 2))
        let changing = ScriptedTransport { request, index in
            (index == 0 ? first : rest).answer(request)
        }
        let changedSink = RecordingSink()
        _ = try await run(plan, into: changedSink, changing)
        #expect(firstDifference(changedSink.run(), bytes(0..<3000, version: 2)) == nil)
        #expect(changing.requests[1].head.headerFields[.ifNoneMatch] == nil)
        #expect(changing.requests[1].head.headerFields[.range] == "bytes=1000-2999")
    }

    @Test("Redirects are followed; each attempt begins at the requested URL")
    func redirects() async throws {
        var cut = model()
        cut.cutAfter = 1000
        let (first, rest) = (cut, model())
        let count = Mutex(0)
        let transport = ScriptedTransport { request, _ in
            guard request.head.authority == "cdn.example" else {
                return ScriptedResponse(status: 302, fields: [.location: "https://cdn.example/b"])
            }
            let index = count.withLock { count in
                defer { count += 1 }
                return count
            }
            // A signed URL that has expired is asked for anew, once.
            if index == 1 { return ScriptedResponse(status: 403) }
            return (index == 0 ? first : rest).answer(request)
        }
        let sink = RecordingSink()
        let outcome = try await run(plan(), into: sink, transport)
        #expect(outcome.finalTarget.string == "https://cdn.example/b")
        #expect(firstDifference(sink.run(), bytes()) == nil)
        #expect(
            transport.requests.map { $0.head.authority ?? "" }
                == Array(repeating: ["origin.example", "cdn.example"], count: 3).flatMap { $0 }
        )
        #expect(transport.requests[1].head.headerFields[.authorization] == nil)
        #expect(transport.requests[3].head.headerFields[.range] == "bytes=1000-4999")
    }

    @Test("Silence ends the download after the timeout, before and after the head")
    func silence() async throws {
        for response in [ScriptedResponse.silence, stalling()] {
            let time = ManualTimeSource()
            let transport = ScriptedTransport(time: time) { _, _ in response }
            let plan = try plan()
            let sink = RecordingSink()
            let task = Task {
                try await Downloader(transport: transport, time: time).run(plan, into: sink)
            }
            await time.waitForSleepers()
            // The watchdog may go to sleep again: what it watches began after its first sleep.
            let driver = Task {
                while !Task.isCancelled {
                    time.advance(by: .seconds(30))
                    await Task.yield()
                }
            }
            let result = await task.result
            driver.cancel()
            let error = #expect(throws: CacheError.self) { try result.get() }
            #expect(error?.code == .timedOut)
            #expect(transport.requests.count == 1)
        }
    }

    private func stalling() -> ScriptedResponse {
        ScriptedResponse(
            status: 200,
            fields: [.contentLength: "5000"],
            steps: [.bytes(bytes(0..<100)), .stall]
        )
    }

    @Test("Cancelling the task ends it as cancelled")
    func cancel() async throws {
        let response = stalling()
        let transport = ScriptedTransport { _, _ in response }
        let plan = try plan()
        let sink = RecordingSink()
        let task = Task {
            try await Downloader(transport: transport, time: InstantTime()).run(plan, into: sink)
        }
        task.cancel()
        let error = await #expect(throws: CacheError.self) { try await task.value }
        #expect(error?.code == .cancelled)
    }

    @Test("HEAD, an empty body, a POST that is not repeated")
    func otherMethods() async throws {
        let empty = ScriptedOriginModel(length: 0)
        let transport = ScriptedTransport { request, _ in
            var response = empty.answer(request)
            if request.head.method == .head, case .success(var head) = response.head {
                head.headerFields[.contentLength] = "7"
                response.head = .success(head)
            }
            return request.head.method == .post ? ScriptedResponse(failure: .closedEarly) : response
        }
        var plan = try plan()
        #expect(
            try await run(plan, into: RecordingSink(), transport).end
                == .completed(completeLength: 0)
        )
        plan.method = .head
        #expect(
            try await run(plan, into: RecordingSink(), transport).end
                == .completed(completeLength: nil)
        )
        plan.method = .post
        let before = transport.requests.count
        let error = await #expect(throws: CacheError.self) {
            try await run(plan, into: RecordingSink(), transport)
        }
        #expect(error?.code == .originFailed)
        #expect(transport.requests.count == before + 1)
    }

    @Test("Row 26: gzip despite identity is decoded before it is stored; damage ends the download")
    func gzip() async throws {
        let plain = bytes()
        let coded = InflaterTests.coded(plain, windowBits: 31)
        func transport(_ body: [UInt8]) -> ScriptedTransport {
            ScriptedTransport { _, _ in
                ScriptedResponse(
                    status: 200,
                    fields: [
                        .contentEncoding: "gzip", .eTag: "\"v\"",
                        .contentLength: String(body.count),
                    ],
                    steps: [.bytes(Array(body[..<9])), .bytes(Array(body[9...]))]
                )
            }
        }
        let sink = RecordingSink()
        let outcome = try await run(plan(), into: sink, transport(coded))
        #expect(outcome.end == .completed(completeLength: Int64(plain.count)))
        #expect(sink.run() == plain)
        for damaged in [Array(coded.dropLast(4)), Array(repeating: 7, count: 100)] {
            let error = await #expect(throws: CacheError.self) {
                try await run(plan(), into: RecordingSink(), transport(damaged))
            }
            #expect(error?.code == .originFailed)
        }
    }

    @Test("Row 24: what arrived before a cut is kept, also when nothing more comes")
    func row24() async throws {
        var cut = model()
        cut.cutAfter = 1234
        let first = cut
        let transport = ScriptedTransport { request, index in
            index == 0 ? first.answer(request) : ScriptedResponse(failure: .connect)
        }
        let sink = RecordingSink()
        let error = await #expect(throws: CacheError.self) {
            try await run(plan(), into: sink, transport)
        }
        #expect(error?.code == .originFailed)
        #expect(firstDifference(sink.run(), bytes(0..<1234)) == nil)
    }

    @Test("Row 25: more bytes than announced: all of it once more, then an error")
    func row25() async throws {
        let transport = ScriptedTransport { [bytes = bytes(0..<30)] _, _ in
            ScriptedResponse(
                status: 200,
                fields: [.contentLength: "20", .eTag: "\"v\""],
                steps: [.bytes(bytes)]
            )
        }
        let sink = RecordingSink()
        let error = await #expect(throws: CacheError.self) {
            try await run(plan(), into: sink, transport)
        }
        #expect(error?.code == .originFailed)
        #expect(transport.requests.count == 2)
        #expect(sink.run().isEmpty)
    }
}
