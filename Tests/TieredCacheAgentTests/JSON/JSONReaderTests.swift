import Testing

@testable import TieredCacheAgent

@Suite("JSON of unknown form", .timeLimit(.minutes(5)))
struct JSONReaderTests {
    private func read(_ text: String) throws -> JSONValue {
        try JSONReader.value(of: Array(text.utf8))
    }

    @Test("Values of each kind are read as they stand")
    func values() throws {
        #expect(
            try read(" [1, -2, 0.5, 1e2, \"a\", true, false, null, {}, []] ") == [
                1, -2, .number(0.5), .number(100), "a", true, false, .null, [:], [],
            ]
        )
        #expect(
            try read(#"{"a":{"b":[{"c":"d"}]},"a2":1}"#) == ["a": ["b": [["c": "d"]]], "a2": 1]
        )
        #expect(try read("9223372036854775807") == .integer(.max))
        #expect(try read("9223372036854775808") == .number(9_223_372_036_854_775_808))
        #expect(try read(#""\"\\\/\b\f\n\r\té😀é""#) == .string("\"\\/\u{8}\u{C}\n\r\té😀é"))
    }

    @Test(
        "What is no JSON is refused",
        arguments: [
            "", " ", "{", "[", "[1", "[1,", "[,]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}",
            "\"", "\"a", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\ud83d\"", "\"\\ud83d\\u0041\"",
            "\"\\ude00\"", "01", "-", "1.", ".5", "1e", "+1", "tru", "nul", "1 2", "[1]]", "NaN",
            "\"\u{1}\"", "1e999",
        ]
    )
    func refusals(text: String) {
        #expect(throws: JSONReader.Failure.self) { try read(text) }
    }

    @Test("A string that is not UTF-8 is refused")
    func invalidUTF8() {
        #expect(throws: JSONReader.Failure.self) {
            try JSONReader.value(of: [0x22, 0xFF, 0x22])
        }
    }

    @Test("Nesting is bounded, however deep it is")
    func nesting() throws {
        let deepest = JSONReader.maximumDepth
        let text = { (depth: Int) in
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        _ = try read(text(deepest))
        #expect(throws: JSONReader.Failure.self) { try read(text(deepest + 1)) }
        #expect(throws: JSONReader.Failure.self) { try read(text(1_000_000)) }
    }

    @Test("What is written is read again, and reads as it was")
    func roundTrip() throws {
        let value: JSONValue = [
            "text": "a\"b\\c/\n\u{1}é😀", "number": .number(0.25), "list": [1, .null, false],
        ]
        #expect(try JSONReader.value(of: value.encoded) == value)
    }

    @Test("Any cut of a message, and any byte changed, is read or refused")
    func damage() throws {
        let message = Array(#"{"id":"é","params":["token:x",[1.5e3,{"a":null}]]}"#.utf8)
        for count in message.indices {
            #expect(throws: JSONReader.Failure.self) {
                try JSONReader.value(of: Array(message[..<count]))
            }
        }
        for index in message.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = message
                changed[index] = byte
                _ = Result { try JSONReader.value(of: changed) }
            }
        }
    }
}
