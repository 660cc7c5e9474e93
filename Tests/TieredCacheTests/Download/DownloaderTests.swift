import HTTPCaching
import HTTPTypes
import Synchronization
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite("Downloader", .timeLimit(.minutes(10)))
struct DownloaderTests {
    private static let length = 5000

    private func plan(
        range: Range<Int64> = 0..<Int64.max,
        generation: Generation? = nil
    ) throws -> DownloadPlan {
        DownloadPlan(
            target: try TargetURI("https://user:word@origin.example/a?secret=1"),
            range: range,
            generation: generation
        )
    }

    private func generation(of model: ScriptedOriginModel) throws -> Generation {
        let tag = try #require(model.entityTag)
        return Generation(
            validator: Validator(of: [.eTag: tag], responseTime: WallTime(seconds: 0)),
            completeLength: Int64(model.length)
        )
    }

    private func run(
        _ plan: DownloadPlan,
        into sink: RecordingSink,
        _ transport: ScriptedTransport,
        time: any TimeSource = InstantTime()
    ) async throws(CacheError) -> DownloadOutcome {
        try await Downloader(transport: transport, time: time, jitter: { 1 })
            .run(plan, into: sink)
    }

    private func model() -> ScriptedOriginModel { ScriptedOriginModel(length: Self.length) }

    private func bytes(_ range: Range<Int> = 0..<length, version: UInt8 = 1) -> [UInt8] {
        ScriptedOriginModel.bytes(version: version, range: range)
    }

    @Test("All of a body, in one request")
    func full() async throws {
        let model = model()
        let transport = ScriptedTransport { request, _ in model.answer(request) }
        let sink = RecordingSink()
        let outcome = try await run(plan(), into: sink, transport)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(sink.run() == bytes())
        #expect(sink.snapshot.complaints.isEmpty)
        #expect(outcome.bytesReceived == Int64(Self.length))
        #expect(outcome.bytesRefetched == 0)
        #expect(outcome.requests == 1)
        let head = try #require(transport.requests.first).head
        #expect(head.headerFields[.range] == nil)
        #expect(head.headerFields[.acceptEncoding] == "identity")
        #expect(head.headerFields[.authorization] == "Basic dXNlcjp3b3Jk")
        #expect(head.path == "/a?secret=1")
        #expect(sink.snapshot.progress.last?.offset == Int64(Self.length))
    }

    @Test("A cut is continued with Range and If-Range, and no byte is fetched twice")
    func resume() async throws {
        var cut = model()
        cut.cutAfter = 1700
        let (first, rest) = (cut, model())
        let transport = ScriptedTransport { request, index in
            (index == 0 ? first : rest).answer(request)
        }
        let sink = RecordingSink()
        let outcome = try await run(plan(), into: sink, transport)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(sink.run() == bytes())
        #expect(sink.snapshot.generations == 1)
        #expect(outcome.bytesRefetched == 0)
        let fields = transport.requests[1].head.headerFields
        #expect(fields[.range] == "bytes=1700-4999")
        #expect(fields[.ifRange] == first.entityTag)
    }

    @Test("Five attempts without progress, with doubling waits; any byte starts the count again")
    func attempts() async throws {
        let transport = ScriptedTransport { _, _ in ScriptedResponse(failure: .connect) }
        let sink = RecordingSink()
        let error = await #expect(throws: CacheError.self) {
            try await run(plan(), into: sink, transport)
        }
        #expect(error?.code == .originFailed)
        #expect(transport.requests.count == 5)
        let delays = sink.snapshot.retries.map(\.delay)
        #expect(delays == [.milliseconds(500), .seconds(1), .seconds(2), .seconds(4)])
        let message = error?.description ?? ""
        #expect(message.contains("https://origin.example/a"))
        #expect(!message.contains("word") && !message.contains("secret"))

        var cut = model()
        cut.cutAfter = 100
        cut.chunkSize = 50
        let model = cut
        let patient = ScriptedTransport { request, index in
            index % 5 == 4 ? model.answer(request) : ScriptedResponse(failure: .closedEarly)
        }
        let patientSink = RecordingSink()
        let outcome = try await run(plan(), into: patientSink, patient)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(patientSink.run() == bytes())
        #expect(outcome.bytesRefetched == 0)
    }

    @Test("A kept-alive connection that was just closing is replaced at once")
    func staleConnection() async throws {
        let model = model()
        let transport = ScriptedTransport { request, index in
            index == 0 ? ScriptedResponse(failure: .closedEarly) : model.answer(request)
        }
        let sink = RecordingSink()
        _ = try await run(plan(), into: sink, transport)
        #expect(sink.snapshot.retries.map(\.delay) == [.zero])
    }

    @Test("Retry-After is honoured, and the last answer is what the caller gets")
    func unavailable() async throws {
        let transport = ScriptedTransport { _, _ in
            ScriptedResponse(status: 503, fields: [.retryAfter: "9"])
        }
        let sink = RecordingSink()
        let outcome = try await run(plan(), into: sink, transport)
        guard case .unsuccessful(let response) = outcome.end else {
            Issue.record("\(outcome.end)")
            return
        }
        #expect(response.status.code == 503)
        #expect(sink.snapshot.retries.allSatisfy { $0.delay == .seconds(9) })
        #expect(transport.requests.count == 5)
        #expect(sink.snapshot.heads.isEmpty)
    }

    @Test(
        "However ranges are answered, the wanted bytes arrive and are of one generation",
        arguments: ScriptedOriginModel.Lie.allCases
    )
    func lies(lie: ScriptedOriginModel.Lie) async throws {
        var model = model()
        model.lie = lie
        let held = bytes(0..<2000)
        let liar = model
        let transport = ScriptedTransport { request, _ in liar.answer(request) }
        let sink = RecordingSink(held: held)
        let plan = try plan(range: 2000..<Int64.max, generation: generation(of: model))
        do {
            let outcome = try await run(plan, into: sink, transport)
            #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
            #expect(sink.run() == bytes())
            #expect(sink.snapshot.complaints.isEmpty)
            let isHonest = [.none, .subset, .starLength, .noTag, .unsolicitedPart].contains(lie)
            #expect(outcome.areRangesUntrusted == false || !isHonest)
            // Where the tag is the same, what was held is kept: nothing is a new generation.
            let changes: Set<ScriptedOriginModel.Lie> = [.otherLength, .otherTag]
            #expect(sink.snapshot.generations == (changes.contains(lie) ? 1 : 0))
        } catch {
            Issue.record("\(lie): \(error)")
        }
        #expect(transport.requests.count < 12)
    }

    @Test("A representation that changed is a new generation from the same response")
    func changed() async throws {
        let old = model()
        var changed = ScriptedOriginModel(length: 4000, version: 2)
        changed.chunkSize = 512
        let new = changed
        let transport = ScriptedTransport { request, _ in new.answer(request) }
        let plan = try plan(range: 2000..<Int64.max, generation: generation(of: old))
        let sink = RecordingSink(held: bytes(0..<2000))
        let outcome = try await run(plan, into: sink, transport)
        #expect(outcome.end == .completed(completeLength: 4000))
        #expect(sink.run() == bytes(0..<4000, version: 2))
        #expect(outcome.requests == 1)

        let stuck = RecordingSink(held: bytes(0..<2000), canReplace: false)
        let error = await #expect(throws: CacheError.self) {
            try await run(plan, into: stuck, transport)
        }
        #expect(error?.code == .representationChanged)
        #expect(stuck.run() == bytes(0..<2000))
    }

    @Test("A range of an unknown representation, and one beyond its end")
    func initialRange() async throws {
        let model = model()
        let transport = ScriptedTransport { request, _ in model.answer(request) }
        let sink = RecordingSink()
        let outcome = try await run(plan(range: 1000..<3000), into: sink, transport)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(sink.run(from: 1000) == bytes(1000..<3000))
        #expect(outcome.bytesReceived == 2000)
        let error = await #expect(throws: CacheError.self) {
            try await run(plan(range: 9000..<Int64.max), into: RecordingSink(), transport)
        }
        #expect(error?.code == .rangeNotSatisfiable)
    }

    @Test("The sink can stop, and can fail with its own error")
    func sinkDecides() async throws {
        let model = model()
        let transport = ScriptedTransport { request, _ in model.answer(request) }
        let outcome = try await run(plan(), into: RecordingSink(stopAt: 1500), transport)
        #expect(outcome.end == .stopped(at: 2000))
        #expect(transport.bytesPulled == 2000)
        let error = await #expect(throws: CacheError.self) {
            try await run(plan(), into: RecordingSink(failAt: 3000), transport)
        }
        #expect(error?.code == .localStorage)
    }

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
        #expect(changedSink.run() == bytes(0..<3000, version: 2))
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
        #expect(sink.run() == bytes())
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
        #expect(sink.run() == bytes(0..<1234))
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
