import HTTPCaching
import HTTPTypes
import Testing

@Suite("ContentRange", .timeLimit(.minutes(10)))
struct ContentRangeTests {
    @Test(
        "Valid values",
        arguments: [
            ("bytes 0-0/1", ContentRange.bytes(0..<1, completeLength: 1)),
            ("bytes 42-1233/1234", .bytes(42..<1234, completeLength: 1234)),
            ("bytes 42-1233/*", .bytes(42..<1234, completeLength: nil)),
            ("BYTES 7-7/9", .bytes(7..<8, completeLength: 9)),
            (" bytes  7-7/9 ", .bytes(7..<8, completeLength: 9)),
            ("bytes */1234", .unsatisfied(completeLength: 1234)),
            ("bytes */0", .unsatisfied(completeLength: 0)),
            (
                "bytes 0-4611686018427387902/4611686018427387903",
                .bytes(0..<(ByteOffset.limit - 1), completeLength: ByteOffset.limit - 1)
            ),
        ]
    )
    func valid(text: String, expected: ContentRange) throws {
        let parsed = try ContentRange(text)
        #expect(parsed == expected)
        #expect(try ContentRange(parsed.fieldValue) == expected)
    }

    @Test(
        "Invalid values",
        arguments: [
            "", "bytes", "bytes ", "bytes=0-1/2", "bytes 0-1", "bytes 0-1/", "bytes -1/2",
            "bytes 0-/2", "bytes 1-0/2", "bytes 0-2/2", "bytes 0-1/2, bytes 0-1/2", "items 0-1/2",
            "bytes */*", "bytes */", "bytes *", "bytes 0-1/2x", "bytes +0-1/2", "bytes 0 - 1/2",
            "bytes 0-9223372036854775807/*", "bytes 0-1/9223372036854775807",
            "bytes 9223372036854775800-9223372036854775806/*", "bytes */4611686018427387904",
            "bytes 0-4611686018427387904/*", "bytes 0-1/4611686018427387904",
            "bytes 0-99999999999999999999/*", "bytes 99999999999999999999-1/2", "bytes 0-1/-5",
        ]
    )
    func invalid(text: String) {
        #expect(throws: FieldSyntaxError.self) { try ContentRange(text) }
    }

    @Test("Two fields are invalid, none is none")
    func fields() throws {
        var fields = HTTPFields()
        #expect(try ContentRange.parse(in: fields) == nil)
        fields[values: .contentRange] = ["bytes 0-0/1", "bytes 0-0/1"]
        #expect(throws: FieldSyntaxError.self) { try ContentRange.parse(in: fields) }
    }

    @Test("Hostile texts never trap and never give an impossible range")
    func fuzz() {
        var random = SeededGenerator(seed: 4)
        let pieces = [
            "bytes ", "bytes", " ", "0", "1", "9", "-", "/", "*", "9223372036854775807",
            "4611686018427387902", "4611686018427387904",
            "9223372036854775806", "18446744073709551616",
        ]
        for _ in 0..<40_000 {
            let text = random.text(of: pieces, count: 9)
            guard let parsed = try? ContentRange(text), let range = parsed.range else { continue }
            #expect(!range.isEmpty && range.lowerBound >= 0, "\(text)")
            #expect(range.upperBound <= parsed.completeLength ?? .max, "\(text)")
        }
    }
}
