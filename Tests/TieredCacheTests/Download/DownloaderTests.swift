import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite("Downloader", .timeLimit(.minutes(10)))
struct DownloaderTests: DownloaderSuite {
    @Test("All of a body, in one request")
    func full() async throws {
        let model = model()
        let transport = ScriptedTransport { request, _ in model.answer(request) }
        let sink = RecordingSink()
        let outcome = try await run(plan(), into: sink, transport)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(firstDifference(sink.run(), bytes()) == nil)
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
        #expect(firstDifference(sink.run(), bytes()) == nil)
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
        #expect(firstDifference(patientSink.run(), bytes()) == nil)
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

    @Test("After a break by the owner of the directory the origin is asked at once, until the end")
    func ownerBreak() async throws {
        let model = model()
        let tag = try #require(model.entityTag)
        let bytes = bytes(0..<1000)
        let fields: HTTPFields = [.eTag: tag, .contentLength: "5000"]
        let broken: [ScriptedResponse] = [
            ScriptedResponse(error: .fromOwner("silent")),
            ScriptedResponse(status: 200, fields: fields, steps: [.fail(.fromOwner("silent"))]),
            ScriptedResponse(
                status: 200,
                fields: fields,
                steps: [.bytes(bytes), .fail(.fromOwner("silent"))]
            ),
        ]
        for response in broken {
            var cut = model
            cut.cutAfter = 2000
            let (first, rest) = (cut, model)
            let transport = ScriptedTransport { request, index in
                index == 0 ? response : (index == 1 ? first : rest).answer(request)
            }
            var plan = DownloadPlan(target: try TargetURI("https://origin.example/a"))
            plan.shared = SharedRequest(target: plan.target, priority: .normal)
            // It is no failed attempt.
            plan.policy.maximumAttempts = 1
            let sink = RecordingSink()
            _ = try await run(plan, into: sink, transport)
            #expect(firstDifference(sink.run(), self.bytes()) == nil)
            #expect(transport.requests.map { $0.shared?.failure } == [nil, .noAnswer, .noAnswer])
            // The one of the origin's own break.
            #expect(sink.snapshot.retries.count == 1)
        }
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
        "A Retry-After that is too long is cut to a minute, and what was asked is said",
        arguments: [
            ("1000000000", "31 years"), ("99999999999999999999", "272 years"),
            ("Fri, 01 Jan 2027 00:00:00 GMT", "365 days"), ("7200", "2 h"), ("61", "61 s"),
            ("60", nil), ("9", nil), ("soon", nil),
        ]
    )
    func longRetryAfter(value: String, asked: String?) async throws {
        let transport = ScriptedTransport { _, index in
            guard index == 0 else { return ScriptedResponse(failure: .tls) }
            return ScriptedResponse(status: 503, fields: [.retryAfter: value])
        }
        let sink = RecordingSink()
        var plan = try plan()
        plan.policy.timeout = .seconds(100)
        let time = InstantTime(longest: .seconds(100))
        await #expect(throws: CacheError.self) {
            try await run(plan, into: sink, transport, time: time)
        }
        let retry = try #require(sink.snapshot.retries.first)
        let words = asked.map { " and asks to wait for \($0)" } ?? ""
        #expect(retry.reason == "the origin answered 503" + words)
        #expect(retry.delay <= .seconds(60))
        #expect(asked == nil || retry.delay == .seconds(60))
    }

    @Test(
        "However ranges are answered, the wanted bytes arrive and are of one generation",
        arguments: ScriptedOriginModel.Lie.allCases
    )
    func lies(lie: ScriptedOriginModel.Lie) async throws {
        var model = model()
        model.lie = lie
        let stored = bytes(0..<2000)
        let liar = model
        let transport = ScriptedTransport { request, _ in liar.answer(request) }
        let sink = RecordingSink(stored: stored)
        let plan = try plan(range: 2000..<Int64.max, generation: generation(of: model))
        do {
            let outcome = try await run(plan, into: sink, transport)
            #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
            #expect(firstDifference(sink.run(), bytes()) == nil)
            #expect(sink.snapshot.complaints.isEmpty)
            let isHonest = [.none, .subset, .starLength, .noTag, .unsolicitedPart].contains(lie)
            #expect(outcome.areRangesUntrusted == false || !isHonest)
            // Where the tag is the same, what was stored is kept, unless bytes were written that
            // turned out to lie: nothing else is a new generation.
            let changes: Set<ScriptedOriginModel.Lie> = [.otherLength, .otherTag, .extraBytes]
            #expect(sink.snapshot.generations == (changes.contains(lie) ? 1 : 0))
        } catch {
            Issue.record("\(lie): \(error)")
        }
        #expect(transport.requests.count < 12)
    }

    @Test("An empty chunk behind the last bytes of a part in chunks is no excess")
    func emptyChunk() async throws {
        let model = model()
        let transport = ScriptedTransport { request, _ in
            var response = model.answer(request)
            response.head = response.head.map { head in
                var head = head
                head.headerFields[.contentLength] = nil
                head.headerFields[.transferEncoding] = "chunked"
                return head
            }
            response.steps += [.bytes([]), .bytes([])]
            return response
        }
        let sink = RecordingSink(stored: bytes(0..<2000))
        let plan = try plan(range: 2000..<Int64.max, generation: generation(of: model))
        let outcome = try await run(plan, into: sink, transport)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(outcome.requests == 1 && sink.snapshot.generations == 0)
        #expect(firstDifference(sink.run(), bytes()) == nil)
    }

    @Test("A representation that changed is a new generation from the same response")
    func changed() async throws {
        let old = model()
        var changed = ScriptedOriginModel(length: 4000, version: 2)
        changed.chunkSize = 512
        let new = changed
        let transport = ScriptedTransport { request, _ in new.answer(request) }
        let plan = try plan(range: 2000..<Int64.max, generation: generation(of: old))
        let sink = RecordingSink(stored: bytes(0..<2000))
        let outcome = try await run(plan, into: sink, transport)
        #expect(outcome.end == .completed(completeLength: 4000))
        #expect(firstDifference(sink.run(), bytes(0..<4000, version: 2)) == nil)
        #expect(outcome.requests == 1)

        let stuck = RecordingSink(stored: bytes(0..<2000), canReplace: false)
        let error = await #expect(throws: CacheError.self) {
            try await run(plan, into: stuck, transport)
        }
        #expect(error?.code == .representationChanged)
        #expect(firstDifference(stuck.run(), bytes(0..<2000)) == nil)
    }

    @Test("A range of an unknown representation, and one beyond its end")
    func initialRange() async throws {
        let model = model()
        let transport = ScriptedTransport { request, _ in model.answer(request) }
        let sink = RecordingSink()
        let outcome = try await run(plan(range: 1000..<3000), into: sink, transport)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(firstDifference(sink.run(from: 1000), bytes(1000..<3000)) == nil)
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
}
