import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// The proxy's entity tag in every kind of response, and every condition on it, over restarts.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerTagTests {
    private static let length: Int64 = 300_000

    /// What the origin says about its representation.
    enum Witness: String, CaseIterable, Sendable {
        case strongTag, strongTagUnstored, date, weakTag, nothing

        /// Whether a part can be completed, so that one generation comes of it.
        var isStrong: Bool { [.strongTag, .strongTagUnstored, .date].contains(self) }

        var film: OriginResource {
            var film = OriginResource.fresh(length)
            switch self {
            case .strongTag: break
            case .strongTagUnstored: film.fields[.cacheControl] = "no-store"
            case .date:
                film.entityTag = .none
                film.lastModified = "Sun, 06 Nov 2005 08:49:37 GMT"
            case .weakTag: film.entityTag = .custom("W/\"1\"")
            case .nothing: film.entityTag = .none
            }
            return film
        }
    }

    @Test("One tag for all answers, and all conditions hold", arguments: Witness.allCases)
    func conditions(_ witness: Witness) async throws {
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("tieredcache-proxy")
        origin.serve("/a.mp4", witness.film)
        var tags: Set<String> = []
        for run in 0..<2 {
            let fixture = try await ProxyFixture(origin: origin, files: files)
            do {
                if witness.isStrong {
                    // Of a part that is stored, and then of the whole.
                    tags.insert(try await Self.check(fixture, "\(witness), part, run \(run)"))
                }
                _ = try await fixture.ask("/a.mp4")
                tags.insert(try await Self.check(fixture, "\(witness), whole, run \(run)"))
            } catch {
                await fixture.stop()
                await origin.stop()
                throw error
            }
            await fixture.stop()
        }
        await origin.stop()
        #expect(tags.count == 1, "\(witness): \(tags)")
    }

    /// Asks in every way, and returns the tag that all responses had.
    private static func check(_ fixture: ProxyFixture, _ context: String) async throws -> String {
        let range = "Range: bytes=5-9"
        let part = try await fixture.ask("/a.mp4", range)
        let tag = try #require(part["etag"], "\(context)")
        #expect(tag.hasPrefix("\"") && part.status == 206, "\(context)")
        let cases: [(status: Int, method: String, fields: [String])] = [
            (200, "HEAD", []), (200, "HEAD", [range]), (200, "HEAD", ["If-Match: \(tag)"]),
            (412, "HEAD", ["If-Match: \"x\""]), (304, "HEAD", ["If-None-Match: \(tag)"]),
            (304, "HEAD", ["If-None-Match: W/\(tag)"]), (200, "HEAD", ["If-None-Match: \"x\""]),
            (206, "GET", [range, "If-Range: \(tag)"]), (206, "GET", [range, "If-Match: \(tag)"]),
            (206, "GET", [range, "If-Match: \"x\", \(tag)"]), (206, "GET", [range, "If-Match: *"]),
            (412, "GET", [range, "If-Match: W/\(tag)"]), (412, "GET", [range, "If-Match: \"x\""]),
            (304, "GET", [range, "If-None-Match: \(tag)"]), (304, "GET", ["If-None-Match: *"]),
            (206, "GET", [range, "If-None-Match: \"x\""]),
            (206, "GET", [range, "If-Match: \(tag)", "If-Range: \(tag)"]),
        ]
        for asked in cases {
            let (port, target) = (fixture.proxy.port, try fixture.target("/a.mp4"))
            let answer = try await onThread {
                let connection = try RawConnection(port: port)
                let lines =
                    ["\(asked.method) \(target) HTTP/1.1", "Host: 127.0.0.1:\(port)"]
                    + asked.fields
                try connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
                return try connection.receiveResponse(toHead: asked.method == "HEAD")
            }
            #expect(answer.status == asked.status, "\(context): \(asked)")
            #expect(answer["etag"] == tag, "\(context): \(asked)")
            if answer.status < 300 {
                #expect(answer["content-type"] == "application/octet-stream", "\(context)")
            }
            if answer.status == 206 {
                #expect(firstDifference(answer.body, part.body) == nil, "\(context): \(asked)")
            }
        }
        return tag
    }

    @Test("Where the range is of another representation the whole comes", arguments: [0, 1])
    func otherRepresentation(_ asked: Int) async throws {
        try await ProxyFixture.run { fixture in
            let film = OriginResource.fresh(Self.length)
            fixture.origin.serve("/a.mp4", film)
            let tag = try #require(try await fixture.ask("/a.mp4", "Range: bytes=5-9")["etag"])
            let other = asked == 0 ? "If-Range: W/\(tag)" : "If-Range: \"x\""
            let answer = try await fixture.ask("/a.mp4", "Range: bytes=5-9", other)
            #expect(answer.status == 200 && answer["etag"] == tag)
            #expect(
                firstDifference(answer.body, film.generatedBody?.bytes(in: 0..<Self.length)) == nil
            )
        }
    }
}
