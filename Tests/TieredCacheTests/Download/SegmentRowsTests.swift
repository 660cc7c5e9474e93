import HTTPCaching
import HTTPTypes
import Testing

@testable import TieredCache

/// The rows of the table for requests with `If-Match` ("S") and without a validator ("U").
@Suite(.timeLimit(.minutes(10)))
struct SegmentRowsTests {
    private static let tag: HTTPFields = [.eTag: "\"v1\""]
    private let generation = Generation(
        validator: Validator(of: tag, responseTime: WallTime(seconds: 0)),
        completeLength: 1000
    )
    private let unnamed = Generation(validator: nil, completeLength: 1000)

    private func meaning(
        _ status: Int,
        _ fields: HTTPFields,
        of kind: RequestKind
    ) -> ResponseDisposition {
        let response = HTTPResponse(status: .init(code: status), headerFields: fields)
        let context = ResponseContext(
            generation: kind.generation,
            responseTime: WallTime(seconds: 0)
        )
        return ResponseDisposition(of: response, to: kind, in: context)
    }

    private func part(_ range: Range<Int64>, of length: Int64 = 1000, tag: String?) -> HTTPFields {
        var fields: HTTPFields = [
            .contentRange: "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)",
            .contentLength: "\(range.count)",
        ]
        if let tag { fields[.eTag] = tag }
        return fields
    }

    private var segment: RequestKind { .segment(500..<600, generation) }
    private var overlap: RequestKind { .overlap(400..<1000, unnamed, stored: 100) }

    private func request(_ kind: RequestKind) throws -> HTTPFields {
        let target = try TargetURI("http://a.example/x")
        return DownloadRequest(
            kind: kind,
            plan: DownloadPlan(target: target),
            chain: RedirectChain(target: target, method: .get),
            bypassesCaches: false
        ).head.headerFields
    }

    @Test("S carries If-Match, or If-Unmodified-Since for a date; U carries no condition")
    func fields() throws {
        let sent = try request(segment)
        #expect(sent[.ifMatch] == "\"v1\"" && sent[.ifRange] == nil)
        #expect(sent[.range] == "bytes=500-599")
        let date = "Thu, 01 Jan 2026 00:00:00 GMT"
        let dated: HTTPFields = [.lastModified: date, .date: "Thu, 01 Jan 2026 00:01:00 GMT"]
        let time = try #require(HTTPDate.parse(date, now: WallTime(seconds: 1_767_225_600)))
        let validator = try #require(Validator(of: dated, responseTime: time))
        let kind = RequestKind.segment(0..<9, Generation(validator: validator))
        #expect(try request(kind)[.ifUnmodifiedSince] == date)
        let plain = try request(overlap)
        #expect(plain[.range] == "bytes=400-999")
        #expect(plain[.ifRange] == nil && plain[.ifMatch] == nil)
    }

    @Test("Rows 4 and 8: S, 206 that agrees goes on, another tag is a change")
    func parts() {
        #expect(
            meaning(206, part(500..<600, tag: "\"v1\""), of: segment)
                == .continuing(500..<600, completeLength: 1000)
        )
        let changed = ResponseDisposition.restart(.representationChanged)
        #expect(meaning(206, part(500..<600, tag: "\"v2\""), of: segment) == changed)
        #expect(meaning(206, part(500..<600, of: 999, tag: "\"v1\""), of: segment) == changed)
    }

    @Test("Row 14: S, 200: one stream of all of it, and the origin is told apart")
    func ignoresRanges() throws {
        let same: HTTPFields = [.eTag: "\"v1\"", .contentLength: "1000"]
        #expect(meaning(200, same, of: segment) == .repeating(completeLength: 1000, comparing: 0))
        guard
            case .newGeneration(let start) = meaning(
                200,
                [.eTag: "\"v2\"", .contentLength: "1000"],
                of: segment
            )
        else {
            Issue.record("a changed 200 is a new generation")
            return
        }
        #expect(start.offset == 0)

        var plan = DownloadPlan(target: try TargetURI("http://a.example/x"), range: 500..<600)
        (plan.generation, plan.isSegment) = (generation, true)
        var machine = DownloadStateMachine(plan)
        guard case .send(let sent) = machine.start() else {
            Issue.record("nothing is sent")
            return
        }
        #expect(sent.kind == segment)
        let response = HTTPResponse(status: .ok, headerFields: same)
        let action = machine.didReceiveHead(response, at: WallTime(seconds: 0)) { true }
        guard case .receive(.continuing) = action else {
            Issue.record("all of the same representation is no new one: \(action)")
            return
        }
    }

    @Test("Rows 15 to 17: S, 412 and 416 are changes, or ranges that are not trusted")
    func refusals() {
        let changed = ResponseDisposition.restart(.representationChanged)
        #expect(meaning(412, [:], of: segment) == changed)
        #expect(meaning(416, [.contentRange: "bytes */100"], of: segment) == changed)
        #expect(meaning(416, [.contentRange: "bytes */1000"], of: overlap) == changed)
        guard case .restart(.rangesUntrusted) = meaning(416, [:], of: segment) else {
            Issue.record("416 without a length")
            return
        }
    }

    @Test("Row 28: U, 206 of the same length is compared, of any other is a change")
    func overlaps() {
        #expect(
            meaning(206, part(400..<1000, tag: nil), of: overlap)
                == .comparing(400..<1000, until: 500, completeLength: 1000)
        )
        let changed = ResponseDisposition.restart(.representationChanged)
        #expect(meaning(206, part(400..<900, of: 900, tag: nil), of: overlap) == changed)
        var unknown = part(400..<1000, tag: nil)
        unknown[.contentRange] = "bytes 400-999/*"
        #expect(meaning(206, unknown, of: overlap) == changed)
    }
}
