import HTTPCaching
import HTTPTypes
import Testing

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct GenerationTagTests {
    private func tag(
        _ fields: HTTPFields,
        _ generation: UInt64?,
        path: String = "/a",
        finalURL: String? = nil
    ) throws -> String? {
        let target = try TargetURI("http://h\(path)")
        let tag = GenerationTag.of(
            fields: fields,
            target: target,
            finalURL: finalURL,
            generation: generation
        )
        #expect(tag?.isWeak != true)
        return tag?.opaque
    }

    @Test func strongTagsOfTheOriginDecide() throws {
        let one = try tag([.eTag: "\"1\""], 7)
        #expect(try one == tag([.eTag: "\"1\"", .lastModified: "x"], 8))
        #expect(try one == tag([.eTag: "\"1\""], nil))
        #expect(try one != tag([.eTag: "\"2\""], 7))
        #expect(try one != tag([.eTag: "\"1\""], 7, path: "/b"))
    }

    @Test("They are of one resource: where redirects lead counts, but for a query that rotates")
    func finalResource() throws {
        func tag(_ finalURL: String?) throws -> String? {
            try self.tag([.eTag: "\"1\""], 7, finalURL: finalURL)
        }
        #expect(try tag(nil) != tag("http://h/v1"))
        #expect(try tag("http://h/v1") != tag("http://h/v2"))
        #expect(try tag("http://h/v1?sig=1") == tag("http://h/v1?sig=2"))
    }

    @Test func elseTheNumberOfTheBody() throws {
        #expect(try tag([.eTag: "W/\"1\""], 7) == "g0000000000000007")
        #expect(try tag([:], .max) == "gffffffffffffffff")
        #expect(try tag([.lastModified: "x"], 7) != tag([.lastModified: "x"], 8))
    }

    @Test func elseWhatThereIs() throws {
        #expect(try tag([:], nil) == nil)
        #expect(try tag([.lastModified: "x"], nil) != nil)
        #expect(try tag([.lastModified: "x"], nil) != tag([.lastModified: "y"], nil))
    }
}
