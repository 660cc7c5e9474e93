import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Origins without any way to seek, behind the proxy.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PoorOriginTests {
    private static let length: Int64 = 1_500_000

    /// What an origin does to ranges and lengths.
    enum Flaw: String, CaseIterable, Sendable {
        case noRanges, noLength, neither, closedAtEnd
        case anotherStart, noContentRange, anotherTotal, severalParts, coded, tooMuch

        var behaviour: OriginBehaviour {
            var fields = HTTPFields()
            switch self {
            case .noRanges, .noLength, .neither, .closedAtEnd:
                return .faithful
            case .anotherStart:
                fields[.contentRange] = "bytes 0-99/\(length)"
            case .noContentRange:
                return OriginBehaviour.faithful.with { $0.omissions = [.contentRange] }
            case .anotherTotal:
                fields[.contentRange] = "bytes 300000-300009/5"
            case .severalParts:
                fields[.contentType] = "multipart/byteranges; boundary=x"
            case .coded:
                fields[.contentEncoding] = "gzip"
            case .tooMuch:
                fields[.contentRange] = "bytes 262144-\(length - 1)/\(length)"
            }
            return .lying(fields)
        }

        var resource: OriginResource {
            var resource = OriginResource.fresh(length)
            switch self {
            case .noRanges: resource.acceptsRanges = false
            case .noLength: resource.framing = .chunked
            case .neither: (resource.acceptsRanges, resource.framing) = (false, .chunked)
            case .closedAtEnd: (resource.acceptsRanges, resource.framing) = (false, .close)
            default: break
            }
            return resource
        }

        /// Deviates in responses to ranges alone: what is sent without one is faithful.
        var script: OriginScript {
            switch self {
            case .noRanges, .noLength, .neither, .closedAtEnd: OriginScript()
            default: OriginScript.first(1, behaviour)
            }
        }
    }

    @Test(
        "A seek waits, what is played is right, and then all of it is seekable",
        arguments: Flaw.allCases
    )
    func seeks(_ flaw: Flaw) async throws {
        try await ProxyFixture.run { fixture in
            let resource = flaw.resource
            let body = try #require(resource.generatedBody)
            fixture.origin.serve("/a.mp4", resource, flaw.script)
            let seek = try await fixture.ask("/a.mp4", "Range: bytes=300000-300009")
            #expect(seek.status == 206, "\(flaw)")
            #expect(seek["content-range"] == "bytes 300000-300009/\(Self.length)", "\(flaw)")
            #expect(firstDifference(seek.body, body.bytes(in: 300_000..<300_010)) == nil, "\(flaw)")
            let whole = try await fixture.ask("/a.mp4")
            #expect(whole.status == 200)
            #expect(firstDifference(whole.body, body.bytes(in: 0..<Self.length)) == nil, "\(flaw)")
            let asked = fixture.requests("/a.mp4")
            for (range, wanted) in [
                ("0-", 0..<Self.length), ("-10", Self.length - 10..<Self.length),
                ("1000000-1000009", 1_000_000..<1_000_010),
            ] {
                let answer = try await fixture.ask("/a.mp4", "Range: bytes=\(range)")
                #expect(answer.status == 206, "\(flaw) \(range)")
                #expect(answer["accept-ranges"] == "bytes")
                #expect(answer["content-range"]?.hasSuffix("/\(Self.length)") == true)
                #expect(
                    firstDifference(answer.body, body.bytes(in: wanted)) == nil,
                    "\(flaw) \(range)"
                )
            }
            #expect(fixture.requests("/a.mp4") == asked, "\(flaw)")
        }
    }

    @Test("Played forward from cold it is right and stored", arguments: Flaw.allCases)
    func playsForward(_ flaw: Flaw) async throws {
        try await ProxyFixture.run { fixture in
            let resource = flaw.resource
            let body = try #require(resource.generatedBody)
            fixture.origin.serve("/a.mp4", resource, flaw.script)
            for field in ["X: y", "Range: bytes=0-"] {
                let answer = try await fixture.ask("/a.mp4", field)
                #expect(answer.status == 200 || answer.status == 206, "\(flaw)")
                #expect(
                    firstDifference(answer.body, body.bytes(in: 0..<Self.length)) == nil,
                    "\(flaw)"
                )
            }
            let asked = fixture.requests("/a.mp4")
            #expect(try await fixture.ask("/a.mp4", "Range: bytes=5-").status == 206, "\(flaw)")
            #expect(fixture.requests("/a.mp4") == asked, "\(flaw)")
        }
    }

    @Test(
        "Without a validator and stale at once, it is fetched once for as long as it is played",
        arguments: [true, false]
    )
    func staleWithoutValidator(_ acceptsRanges: Bool) async throws {
        let time = ManualTimeSource()
        try await ProxyFixture.run {
            $0.timeSource = time
        } _: { fixture in
            var resource = OriginResource.generated(length: Self.length, cacheControl: "no-cache")
            resource.entityTag = .none
            resource.acceptsRanges = acceptsRanges
            let body = try #require(resource.generatedBody)
            fixture.origin.serve("/a.mp4", resource)
            #expect(
                try await firstDifference(
                    fixture.ask("/a.mp4").body,
                    body.bytes(in: 0..<Self.length)
                ) == nil
            )
            // A first part, which nothing can be joined to, and then the whole.
            let asked = fixture.requests("/a.mp4")
            #expect(asked == (acceptsRanges ? 2 : 1))
            for start: Int64 in [1, 1_400_000, 500_000, 70_000] {
                let range = start..<start + 100_000
                let answer = try await fixture.ask(
                    "/a.mp4",
                    "Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)"
                )
                #expect(answer.status == 206 && answer.body == body.bytes(in: range))
                time.advance(by: .seconds(9))
            }
            #expect(fixture.requests("/a.mp4") == asked)
            // A later request wants to know what there is by then.
            while fixture.requests("/a.mp4") == asked {
                // The last response may still be about to end.
                time.advance(by: .seconds(30))
                _ = try await fixture.ask("/a.mp4", "Range: bytes=5-9")
            }
            let later = fixture.requests("/a.mp4")
            // A request that begins anew does as well.
            _ = try await fixture.ask("/a.mp4", "Range: bytes=0-")
            #expect(fixture.requests("/a.mp4") > later)
        }
    }

    /// What is said about a representation that is sent only as a whole.
    enum Witness: String, CaseIterable, Sendable {
        case nothing, youngDate, oldDate, strongTag
    }

    @Test(
        "After a look at a part, the whole comes in one transfer, without an end in its middle",
        .tags(.long),
        arguments: Witness.allCases,
        ["max-age=3600", "no-cache"]
    )
    func partsThatCannotBeContinued(_ witness: Witness, _ control: String) async throws {
        try await ProxyFixture.run { fixture in
            var resource = OriginResource.generated(length: Self.length, cacheControl: control)
            resource.acceptsRanges = false
            if witness != .strongTag { resource.entityTag = .none }
            if witness == .youngDate { resource.lastModified = "Fri, 31 Dec 2200 23:59:59 GMT" }
            if witness == .oldDate { resource.lastModified = "Sun, 06 Nov 2005 08:49:37 GMT" }
            let body = try #require(resource.generatedBody)
            let gate = OriginGate()
            let script = OriginScript.first(1, .wait(for: gate, after: 700_000))
            fixture.origin.serve("/a.mp4", resource, script)
            let part = try await fixture.ask("/a.mp4", "Range: bytes=100-199")
            #expect(firstDifference(part.body, body.bytes(in: 100..<200)) == nil)
            await fixture.origin.waitUntil { $0.openConnections == 0 }
            gate.open()
            let whole = try await fixture.ask("/a.mp4")
            #expect(whole.status == 200)
            #expect(
                firstDifference(whole.body, body.bytes(in: 0..<Self.length)) == nil,
                "\(witness) \(control)"
            )
            // The look, perhaps a question whether it is current, and the whole.
            #expect(fixture.requests("/a.mp4") <= 3, "\(witness) \(control)")
        }
    }
}
