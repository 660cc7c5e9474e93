import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Signed URLs that expire, bounded requests, permanent redirects.
@Suite(.timeLimit(.minutes(10)))
struct DownloaderResolvingTests {
    private static let length = 200_000

    private func model(
        _ change: (inout ScriptedOriginModel) -> Void = { _ in }
    )
        -> ScriptedOriginModel
    {
        var model = ScriptedOriginModel(length: Self.length)
        model.chunkSize = 10_000
        change(&model)
        return model
    }

    private func bytes(version: UInt8 = 1) -> [UInt8] {
        ScriptedOriginModel.bytes(version: version, range: 0..<Self.length)
    }

    private func plan(fresh: String? = "https://cdn.example/a?sig=2") throws -> DownloadPlan {
        var plan = DownloadPlan(target: try TargetURI("https://cdn.example/a?sig=1"))
        let target = try fresh.map { try TargetURI($0) }
        plan.resolve = { $0 == 403 ? target : nil }
        return plan
    }

    private func run(
        _ plan: DownloadPlan,
        into sink: RecordingSink,
        _ transport: ScriptedTransport
    ) async throws(CacheError) -> DownloadOutcome {
        try await Downloader(transport: transport, time: InstantTime(), jitter: { 1 })
            .run(plan, into: sink)
    }

    /// An origin that cuts the first response, refuses the old signature from then on, and answers
    /// the new one by `fresh`.
    private func expiring(_ fresh: ScriptedOriginModel) -> ScriptedTransport {
        var first = fresh
        (first.version, first.cutAfter) = (1, 120_000)
        let cut = first
        return ScriptedTransport { request, index in
            if request.head.path?.hasSuffix("sig=2") == true { return fresh.answer(request) }
            return index == 0 ? cut.answer(request) : ScriptedResponse(status: 403)
        }
    }

    @Test(
        "Row 20: 403 asks for a fresh URL, and the same generation goes on there, after an overlap"
    )
    func sameGeneration() async throws {
        let (transport, sink) = (expiring(model()), RecordingSink())
        let outcome = try await run(plan(), into: sink, transport)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(sink.run() == bytes() && sink.snapshot.generations == 1)
        #expect(outcome.bytesRefetched == 65_536)
        let fields = try #require(transport.requests.last).head.headerFields
        #expect(fields[.range] == "bytes=54464-199999" && fields[.ifRange] == model().entityTag)
    }

    @Test("A fresh URL that leads to another representation is a new generation")
    func otherGeneration() async throws {
        let (transport, sink) = (expiring(model { $0.version = 2 }), RecordingSink())
        let outcome = try await run(plan(), into: sink, transport)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(sink.run() == bytes(version: 2) && sink.snapshot.generations == 2)
    }

    @Test("Row 28: without a validator an overlap is compared, and the rest goes on")
    func overlap() async throws {
        let (transport, sink) = (expiring(model { $0.tagPrefix = nil }), RecordingSink())
        let outcome = try await run(plan(), into: sink, transport)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(sink.run() == bytes() && sink.snapshot.generations == 1)
        #expect(sink.snapshot.complaints.isEmpty)
        #expect(outcome.bytesRefetched == 65_536)
        let fields = try #require(transport.requests.last).head.headerFields
        #expect(fields[.range] == "bytes=54464-199999" && fields[.ifRange] == nil)
    }

    @Test("Row 28: an overlap that differs is a change: all of it once more")
    func overlapDiffers() async throws {
        let fresh = model { ($0.tagPrefix, $0.version) = (nil, 2) }
        let (transport, sink) = (expiring(fresh), RecordingSink())
        let outcome = try await run(plan(), into: sink, transport)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(sink.run() == bytes(version: 2) && sink.snapshot.generations == 2)
    }

    @Test("A resolver without an answer, or one whose URL is refused too, ends it with the status")
    func refused() async throws {
        for fresh in [nil, "https://cdn.example/a?sig=1"] {
            let sink = RecordingSink()
            let outcome = try await run(plan(fresh: fresh), into: sink, expiring(model()))
            guard case .unsuccessful(let response) = outcome.end else {
                Issue.record("\(outcome.end)")
                continue
            }
            #expect(response.status == .forbidden)
            #expect(firstDifference(sink.run(), Array(bytes()[..<120_000])) == nil)
        }
    }

    @Test("Credentials go to the origin that they were given for, not to a fresh URL elsewhere")
    func credentials() async throws {
        let model = model()
        let transport = ScriptedTransport { request, _ in
            request.head.authority == "other.example"
                ? model.answer(request) : ScriptedResponse(status: 403)
        }
        var plan = try plan(fresh: "https://other.example/b")
        plan.fields[.authorization] = "Bearer x"
        _ = try await run(plan, into: RecordingSink(), transport)
        let sent = transport.requests.map { $0.head.headerFields[.authorization] }
        #expect(sent == ["Bearer x", nil])
    }

    @Test("Bounded requests bring all of it, one after the other, without a byte twice")
    func bounded() async throws {
        var plan = DownloadPlan(target: try TargetURI("https://cdn.example/a"))
        plan.policy.maximumRequestLength = 60_000
        let model = model()
        let (transport, sink) = (
            ScriptedTransport { request, _ in model.answer(request) }, RecordingSink()
        )
        let outcome = try await run(plan, into: sink, transport)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(sink.run() == bytes() && sink.snapshot.generations == 1)
        #expect(outcome.bytesRefetched == 0)
        #expect(
            transport.requests.map { $0.head.headerFields[.range] } == [
                "bytes=0-59999", "bytes=60000-119999", "bytes=120000-179999",
                "bytes=180000-199999",
            ]
        )
    }

    @Test("What cannot be joined is not asked for in parts")
    func unboundable() async throws {
        var plan = DownloadPlan(target: try TargetURI("https://cdn.example/a"))
        plan.policy.maximumRequestLength = 60_000
        let model = model { $0.tagPrefix = nil }
        let (transport, sink) = (
            ScriptedTransport { request, _ in model.answer(request) }, RecordingSink()
        )
        let outcome = try await run(plan, into: sink, transport)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(sink.run() == bytes() && sink.snapshot.generations == 1)
        #expect(transport.requests.map { $0.head.headerFields[.range] } == ["bytes=0-59999", nil])
    }

    @Test("Permanent redirects are remembered, tried first, and distrusted when they fail")
    func permanent() async throws {
        let model = model()
        let isMoved = Guarded(true)
        let transport = ScriptedTransport { request, _ in
            switch request.head.path {
            case "/old":
                ScriptedResponse(
                    status: isMoved.withLock { $0 } ? 308 : 302,
                    fields: [.location: isMoved.withLock { $0 } ? "/new" : "/newest"]
                )
            case "/new" where !isMoved.withLock({ $0 }): ScriptedResponse(status: 404)
            default: model.answer(request)
            }
        }
        var plan = DownloadPlan(target: try TargetURI("https://cdn.example/old"))
        let first = try await run(plan, into: RecordingSink(), transport)
        #expect(first.permanentTarget?.string == "https://cdn.example/new")
        plan.permanentTarget = first.permanentTarget
        let second = try await run(plan, into: RecordingSink(), transport)
        #expect(second.permanentTarget == first.permanentTarget)
        isMoved.withLock { $0 = false }
        let third = try await run(plan, into: RecordingSink(), transport)
        #expect(third.end == .completed(completeLength: Int64(Self.length)))
        #expect(third.permanentTarget == nil)
        #expect(
            transport.requests.map(\.head.path) == [
                "/old", "/new", "/new", "/new", "/old", "/newest",
            ]
        )
    }
}
