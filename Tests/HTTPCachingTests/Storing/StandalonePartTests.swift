import HTTPTypes
import Testing

@testable import HTTPCaching

@Suite(.timeLimit(.minutes(10)))
struct StandalonePartTests {
    private static func part(_ contentRange: String?, length: Int64) -> StandalonePart {
        var fields = HTTPFields()
        fields[.contentRange] = contentRange
        return StandalonePart(fields: fields, length: length)
    }

    @Test("Only bytes inside the part are answered from it (RFC 9111 §3.3)")
    func bytesInside() {
        let part = Self.part("bytes 4-9/12", length: 6)
        #expect(part.range == 4..<10 && part.completeLength == 12)
        #expect(part.bytes(for: .bounded(4..<10)) == 4..<10)
        #expect(part.bytes(for: .bounded(6..<7)) == 6..<7)
        #expect(part.bytes(for: .bounded(3..<5)) == nil)
        #expect(part.bytes(for: .bounded(9..<11)) == nil)
        #expect(part.bytes(for: .openEnded(from: 5)) == nil)
        #expect(part.bytes(for: .suffix(3)) == nil)
        #expect(part.bytes(for: .bounded(20..<30)) == nil)
    }

    @Test("A part that reaches the end answers what is counted from there")
    func theEnd() {
        let part = Self.part("bytes 4-9/10", length: 6)
        #expect(part.bytes(for: .openEnded(from: 5)) == 5..<10)
        #expect(part.bytes(for: .openEnded(from: 3)) == nil)
        #expect(part.bytes(for: .suffix(6)) == 4..<10)
        #expect(part.bytes(for: .suffix(7)) == nil)
        #expect(part.bytes(for: .bounded(8..<100)) == 8..<10)
    }

    @Test("Where the length is not known, nothing is counted from the end")
    func unknownLength() {
        let part = Self.part("bytes 4-9/*", length: 6)
        #expect(part.bytes(for: .bounded(4..<10)) == 4..<10)
        #expect(part.bytes(for: .bounded(8..<100)) == nil)
        #expect(part.bytes(for: .openEnded(from: 4)) == nil)
        #expect(part.bytes(for: .suffix(6)) == nil)
    }

    @Test(
        "A part of another length than its range, or of none that can be read, has no place",
        arguments: ["bytes 4-9/10", "bytes */10", "bytes 9-4/10", "lines 1-5/10", "", nil]
    )
    func withoutAPlace(contentRange: String?) {
        let part = Self.part(contentRange, length: 5)
        #expect(part.range == nil)
        #expect(part.bytes(for: .bounded(5..<6)) == nil)
        #expect(part.bytes(for: .suffix(5)) == nil)
    }

    @Test("Only what is fresh for a while and may be stored at all is kept")
    func storability() {
        let cases: [(String, HTTPFields, Int, Bool, Bool)] = [
            ("max-age=60", [:], 206, false, true), ("max-age=60", [:], 206, true, true),
            ("max-age=0", [:], 206, false, false), ("", [:], 206, false, false),
            ("no-store, max-age=60", [:], 206, false, false),
            ("max-age=60", [:], 200, false, false),
            ("private, max-age=60", [:], 206, true, false),
            ("private, max-age=60", [:], 206, false, true),
            ("max-age=60", [.authorization: "x"], 206, true, false),
            ("max-age=60", [.cacheControl: "no-store"], 206, false, false),
        ]
        for (control, request, status, isShared, expected) in cases {
            let facts = ResponseFacts.make(status, [.cacheControl: control])
            var rules = CacheRules()
            rules.isShared = isShared
            let isStorable = StandalonePart.isStorable(
                facts,
                request: RequestFacts(method: .get, fields: request),
                rules: rules
            )
            #expect(isStorable == expected, "\(control) \(request) \(status) \(isShared)")
        }
    }
}
