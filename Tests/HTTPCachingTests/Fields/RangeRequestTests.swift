import HTTPCaching
import Testing

@Suite("RangeRequest", .timeLimit(.minutes(10)))
struct RangeRequestTests {
    /// RFC 9110 §14.1.2 and what players send, of 10,000 bytes.
    @Test(
        "Worked examples",
        arguments: [
            ("bytes=0-499", RangeRequest.Resolution.partial(0..<500)),
            ("bytes=500-999", .partial(500..<1000)),
            ("bytes=-500", .partial(9500..<10_000)),
            ("bytes=9500-", .partial(9500..<10_000)),
            ("bytes=0-", .partial(0..<10_000)),
            ("bytes=0-0", .partial(0..<1)),
            ("bytes=0-1", .partial(0..<2)),
            ("bytes=-1", .partial(9999..<10_000)),
            ("bytes=-99999", .partial(0..<10_000)),
            ("bytes=9999-99999", .partial(9999..<10_000)),
            ("bytes=0-9223372036854775807", .partial(0..<10_000)),
            ("bytes=0-99999999999999999999999", .partial(0..<10_000)),
            ("bytes=-99999999999999999999999", .partial(0..<10_000)),
            ("bytes=10000-", .unsatisfiable),
            ("bytes=10000-10001", .unsatisfiable),
            ("bytes=99999999999999999999999-", .unsatisfiable),
            ("bytes=-0", .unsatisfiable),
            ("bytes=0-0,-1", .whole),
            ("bytes= 0-0 , 10000- ,", .partial(0..<1)),
            ("bytes=,0-0", .partial(0..<1)),
            ("BYTES=0-0", .partial(0..<1)),
        ]
    )
    func examples(text: String, expected: RangeRequest.Resolution) throws {
        let request = try #require(RangeRequest(text))
        #expect(request.resolution(completeLength: 10_000) == expected)
        #expect(RangeRequest(request.fieldValue) == request)
    }

    @Test(
        "Malformed fields are ignored",
        arguments: [
            "", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=a-b", "bytes=1-0", "bytes 0-1",
            "bytes=0-1;", "items=0-1", "bytes=0-1-2", "bytes=0 -1", "bytes=0x10-", "bytes=--1",
            "bytes=0-1, 5", "bytes=+0-1", "bytes =0-1",
        ]
    )
    func malformed(text: String) {
        #expect(RangeRequest(text) == nil)
    }

    @Test("Of nothing, no range exists but a suffix is all")
    func empty() throws {
        #expect(try resolution("bytes=0-", of: 0) == .unsatisfiable)
        #expect(try resolution("bytes=-5", of: 0) == .whole)
        #expect(try resolution("bytes=-0", of: 0) == .unsatisfiable)
    }

    private func resolution(_ text: String, of length: Int64) throws -> RangeRequest.Resolution {
        try #require(RangeRequest(text)).resolution(completeLength: length)
    }

    @Test("Every small range of every small length agrees with a list of bytes")
    func exhaustive() {
        for length in Int64(0)..<6 {
            let bytes = Array(0..<length)
            for first in Int64(0)..<7 {
                let tail = bytes.filter { $0 >= first }
                let open = ByteRangeSpec.openEnded(from: first).resolved(completeLength: length)
                #expect(open.map(Array.init) ?? [] == tail)
                let suffix = ByteRangeSpec.suffix(first).resolved(completeLength: length)
                #expect(suffix.map(Array.init) ?? [] == Array(bytes.suffix(Int(first))))
                for last in first..<8 {
                    let bounded = ByteRangeSpec.bounded(first..<last + 1)
                    let resolved = bounded.resolved(completeLength: length)
                    #expect(resolved.map(Array.init) ?? [] == tail.filter { $0 <= last })
                }
            }
        }
    }

    @Test("Hostile texts never trap")
    func fuzz() {
        var random = SeededGenerator(seed: 5)
        let pieces = [
            "bytes=", "0", "1", "-", ",", " ", "9223372036854775807", "9223372036854775806",
            "99999999999999999999",
        ]
        for _ in 0..<40_000 {
            let text = random.text(of: pieces, count: 9)
            guard let request = RangeRequest(text) else { continue }
            let length = Int64.random(in: 0...(.max), using: &random)
            guard case .partial(let range) = request.resolution(completeLength: length) else {
                continue
            }
            #expect(range.lowerBound >= 0 && range.upperBound <= length, "\(text)")
        }
    }
}
