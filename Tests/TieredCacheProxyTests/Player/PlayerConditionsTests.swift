import HTTPCaching
import HTTPTypes
import Testing

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct PlayerConditionsTests {
    private static let tag = EntityTag(opaque: "g1")
    private static let modified = "Wed, 21 Oct 2015 07:28:00 GMT"
    private static let earlier = "Wed, 21 Oct 2015 07:27:59 GMT"

    private func outcome(
        _ fields: HTTPFields,
        tag: EntityTag? = tag,
        modified: String? = modified
    ) -> PlayerConditions.Outcome {
        PlayerConditions(fields, isHead: false)
            .outcome(tag: tag, lastModified: modified, now: WallTime(nanoseconds: 0))
    }

    @Test func withoutConditionsItIsAnswered() {
        #expect(outcome([:]) == .answer)
        #expect(outcome([.range: "bytes=0-"], tag: nil, modified: nil) == .answer)
    }

    @Test func ifMatchIsStrong() {
        #expect(outcome([.ifMatch: "\"g1\""]) == .answer)
        #expect(outcome([.ifMatch: "\"x\", \"g1\""]) == .answer)
        #expect(outcome([.ifMatch: "*"]) == .answer)
        #expect(outcome([.ifMatch: "W/\"g1\""]) == .failed)
        #expect(outcome([.ifMatch: "\"g2\""]) == .failed)
        #expect(outcome([.ifMatch: "\"g1\""], tag: nil) == .failed)
    }

    @Test func ifUnmodifiedSinceCounts() {
        #expect(outcome([.ifUnmodifiedSince: Self.modified]) == .answer)
        #expect(outcome([.ifUnmodifiedSince: Self.earlier]) == .failed)
        #expect(outcome([.ifUnmodifiedSince: "nonsense"]) == .answer)
        // If-Match goes first (RFC 9110 §13.2.2).
        #expect(outcome([.ifMatch: "\"g1\"", .ifUnmodifiedSince: Self.earlier]) == .answer)
    }

    @Test func ifNoneMatchIsWeak() {
        #expect(outcome([.ifNoneMatch: "\"g1\""]) == .notModified)
        #expect(outcome([.ifNoneMatch: "W/\"g1\""]) == .notModified)
        #expect(outcome([.ifNoneMatch: "*"]) == .notModified)
        #expect(outcome([.ifNoneMatch: "\"g2\""]) == .answer)
        #expect(outcome([.ifNoneMatch: "\"g2\"", .ifModifiedSince: Self.modified]) == .answer)
        #expect(outcome([.ifModifiedSince: Self.modified]) == .notModified)
        #expect(outcome([.ifModifiedSince: Self.earlier]) == .answer)
    }

    @Test func ifRangeDecidesAboutTheRange() {
        #expect(outcome([.range: "bytes=1-", .ifRange: "\"g1\""]) == .answer)
        #expect(outcome([.range: "bytes=1-", .ifRange: "\"g2\""]) == .answerWhole)
        #expect(outcome([.range: "bytes=1-", .ifRange: "W/\"g1\""]) == .answerWhole)
        #expect(outcome([.range: "bytes=1-", .ifRange: Self.modified]) == .answer)
        #expect(outcome([.range: "bytes=1-", .ifRange: Self.earlier]) == .answerWhole)
        #expect(outcome([.range: "bytes=1-", .ifRange: "\"g1\""], tag: nil) == .answerWhole)
    }

    @Test(arguments: [
        ("bytes=0-", ByteRangeSpec.openEnded(from: 0)), ("bytes=0-1", .bounded(0..<2)),
        ("bytes=-5", .suffix(5)), ("BYTES= 7-9 ", .bounded(7..<10)),
    ])
    func singleRangesCount(field: String, range: ByteRangeSpec) {
        #expect(PlayerConditions([.range: field], isHead: false).range == range)
        #expect(PlayerConditions([.range: field], isHead: true).range == nil)
    }

    @Test(arguments: ["bytes=0-1,4-5", "bytes=5-4", "lines=1-2", "bytes=", "bytes=a-b", "0-1"])
    func otherRangesAreIgnored(field: String) {
        #expect(PlayerConditions([.range: field], isHead: false).range == nil)
    }
}
