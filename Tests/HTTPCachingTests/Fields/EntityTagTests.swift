import HTTPCaching
import Testing

@Suite("EntityTag", .timeLimit(.minutes(10)))
struct EntityTagTests {
    @Test("Reading", arguments: ["\"\"", "\"a\"", "W/\"a b\"", "\"é\"", "\"!#$%~\"", "\"a,b\""])
    func reading(text: String) {
        let tag = EntityTag(text)
        let isReadable = !text.contains(" ")
        #expect((tag != nil) == isReadable)
        #expect(tag.map(\.description) == (isReadable ? text : nil))
        #expect(EntityTag("  \(text)\t") == tag)
    }

    @Test(
        "Not a tag",
        arguments: [
            "", "a", "\"", "\"a", "a\"", "w/\"a\"", "W/a", "W\"a\"", "W/", "\"a\"b", "\"a\", \"b\"",
            "'a'", "\"a\u{7F}\"", "\"a\u{1}\"", "*",
        ]
    )
    func invalid(text: String) {
        #expect(EntityTag(text) == nil)
    }

    /// RFC 9110 §8.8.3.2, the table.
    @Test(
        "Comparison",
        arguments: [
            ("W/\"1\"", "W/\"1\"", false, true), ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true), ("\"1\"", "\"1\"", true, true),
        ]
    )
    func comparison(left: String, right: String, strong: Bool, weak: Bool) throws {
        let left = try #require(EntityTag(left))
        let right = try #require(EntityTag(right))
        #expect(left.stronglyMatches(right) == strong)
        #expect(left.weaklyMatches(right) == weak)
    }

    @Test("Canonically equivalent texts are different tags")
    func unicode() throws {
        let composed = try #require(EntityTag("\"\u{E9}\""))
        let decomposed = try #require(EntityTag("\"e\u{301}\""))
        #expect(composed != decomposed)
        #expect(!composed.weaklyMatches(decomposed))
    }

    @Test("A tag cannot be made of characters it may not hold")
    func making() {
        #expect(EntityTag(opaque: "a\"b") == nil)
        #expect(EntityTag(opaque: "a\nb") == nil)
        #expect(EntityTag(opaque: "ab", isWeak: true)?.description == "W/\"ab\"")
    }
}

@Suite("EntityTagList", .timeLimit(.minutes(10)))
struct EntityTagListTests {
    @Test(
        "Reading",
        arguments: [
            ("\"a\"", ["a"]), ("\"a\", W/\"b\"", ["a", "b"]), ("\"a\",,\"b\" ,", ["a", "b"]),
            ("\"a,b\", \"c\"", ["a,b", "c"]), ("abc, \"d\"", ["d"]), ("\"a\"x, \"b\"", ["b"]),
            ("", []), ("\"open", []), ("*, \"a\"", ["a"]),
        ]
    )
    func reading(text: String, expected: [String]) {
        guard case .tags(let tags) = EntityTagList(text) else {
            Issue.record("\(text) is not *")
            return
        }
        #expect(tags.map(\.opaque) == expected)
    }

    @Test("Star matches everything, a list by strength")
    func matching() throws {
        let weak = try #require(EntityTag("W/\"a\""))
        #expect(EntityTagList(" * ") == .any)
        #expect(EntityTagList("*").weaklyMatches(nil))
        #expect(EntityTagList("\"a\"").weaklyMatches(weak))
        #expect(!EntityTagList("\"a\"").stronglyMatches(weak))
        #expect(!EntityTagList("\"a\"").weaklyMatches(nil))
    }

    @Test("Hostile texts never trap")
    func fuzz() {
        var random = SeededGenerator(seed: 3)
        let pieces = ["\"", "W/", "a", ",", " ", "*", "\"a\"", "é"]
        for _ in 0..<40_000 {
            let text = random.text(of: pieces, count: 10)
            guard case .tags(let tags) = EntityTagList(text) else { continue }
            for tag in tags {
                #expect(EntityTag(tag.description) == tag, "\(text)")
            }
        }
    }
}
