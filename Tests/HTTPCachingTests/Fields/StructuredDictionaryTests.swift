import Testing

@testable import HTTPCaching

@Suite("StructuredDictionary", .timeLimit(.minutes(10)))
struct StructuredDictionaryTests {
    typealias Value = StructuredDictionary.Value

    static let valid: [(String, [(String, Value)])] = [
        ("", []), ("  ", []), ("a", [("a", .boolean(true))]), ("a=?0", [("a", .boolean(false))]),
        ("a=1, b", [("a", .integer(1)), ("b", .boolean(true))]),
        ("a=1 \t,\t b=2", [("a", .integer(1)), ("b", .integer(2))]),
        ("max-age=-60", [("max-age", .integer(-60))]), ("a=1.5", [("a", .other)]),
        ("a=999999999999999", [("a", .integer(999_999_999_999_999))]),
        ("a=\"x \\\" \\\\\"", [("a", .string("x \" \\"))]),
        ("a=Tok/en:x", [("a", .token("Tok/en:x"))]),
        ("a=*x", [("a", .token("*x"))]), ("*k_-.9=1", [("*k_-.9", .integer(1))]),
        ("a=:aGVsbG8=:", [("a", .bytes("aGVsbG8="))]), ("a=(1 \"x\" y);q=1", [("a", .other)]),
        ("a=();b, c", [("a", .other), ("c", .boolean(true))]),
        ("a;x;y=?0;z=\"q\", b", [("a", .boolean(true)), ("b", .boolean(true))]),
        // A repeated key keeps its place and takes the last value (RFC 8941 §4.2.2).
        ("a=1, b=2, a=3", [("a", .integer(3)), ("b", .integer(2))]),
        // The types that RFC 9651 adds: a date and a display string.
        ("a=@1659578233, b", [("a", .other), ("b", .boolean(true))]),
        ("a=%\"f%c3%bc\"", [("a", .other)]), ("a=1\t", [("a", .integer(1))]),
    ]

    @Test("What is a dictionary is read", arguments: valid)
    func reading(text: String, expected: [(String, Value)]) throws {
        let members = try #require(StructuredDictionary(text)).members
        #expect(members.map(\.key) == expected.map(\.0))
        #expect(members.map(\.value) == expected.map(\.1))
    }

    @Test("A dictionary of more than 4 KiB is not read")
    func long() {
        let text = (0..<1024).map { "k\($0 % 10)" }.joined(separator: " ,")
        #expect(text.utf8.count == 4094)
        #expect(StructuredDictionary(text + "  ") != nil)
        #expect(StructuredDictionary(text + "   ") == nil)
    }

    @Test(
        "One error makes all of it invalid",
        arguments: [
            "a,", "a,,b", ",a", "a b", "A=1", "Max-Age=1", "1=a", "a =1", "a= 1", "a=", "a=&", "&",
            "max-age=10000, &&&&&", "a=1.", "a=.5", "a=1.2345", "a=1234567890123456",
            "a=1234567890123.1", "a=--1", "a=\"x", "a=\"\\x\"", "a=\"\u{e4}\"", "a=\"\t\"", "a=?2",
            "a=?", "a=:x", "a=:&:", "a=(1", "a=(1,2)", "a=(1\"x\")", "a;", "a;1", "a;b=", "a=1;;b",
            "a=1 b=2", "\ta", "a=\u{e4}", "a=@1.5", "a=@", "a=%\"%C3%BC\"", "a=%\"%ff\"", "a=%x",
            "a=-",
            "a=1;\tb", "a=(1\t2)", "a=(1", "a=(1;", "a=\"x\\", "a=%\"%", "a=@-",
        ]
    )
    func invalid(text: String) {
        #expect(StructuredDictionary(text) == nil)
    }

    @Test("Nothing that arrives traps, and what is read can be read again")
    func fuzz() {
        var random = SeededGenerator(seed: 20_260_213)
        let alphabet = Array("a=1, \t;\"\\?01:()-.*_/%&Zz\u{e4}".unicodeScalars)
        for _ in 0..<20_000 {
            var text = ""
            for _ in 0..<Int.random(in: 0...24, using: &random) {
                text.unicodeScalars.append(alphabet.randomElement(using: &random) ?? " ")
            }
            guard let dictionary = StructuredDictionary(text) else { continue }
            let keys = dictionary.members.map(\.key)
            #expect(Set(keys).count == keys.count, "\(text.debugDescription)")
            #expect(StructuredDictionary(" \(text) ") == dictionary, "\(text.debugDescription)")
        }
    }
}
