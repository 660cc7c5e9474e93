import HTTPCaching
import HTTPTypes
import Testing

@Suite("VaryMatch", .timeLimit(.minutes(10)))
struct VaryMatchTests {
    private func fields(_ name: String, _ values: String...) throws -> HTTPFields {
        var fields = HTTPFields()
        fields[values: try #require(HTTPField.Name(name))] = values
        return fields
    }

    private func matches(
        _ name: String,
        _ stored: HTTPFields,
        _ request: HTTPFields
    ) -> Bool {
        let selecting = VaryMatch.selectingFields(response: [.vary: name], request: stored)
        return VaryMatch.matches(selecting, request: request)
    }

    @Test(
        "Values that mean the same are the same",
        arguments: [
            ("Foo", "1", "1", true), ("Foo", "1", "2", false), ("Foo", "1,2", " 1, 2 ", false),
            ("Foo", "1, 2", "2, 1", false), ("Foo", "a", "A", false), ("Foo", "a b", "ab", false),
            ("Foo", "\"a, b\"", "\"a,b\"", false), ("Foo", "\"a\" ,b", "\"a\",b", false),
            ("Foo", "\"a", "\"a", true), ("Foo", ",,1", "1", false), ("Foo", " 1 ", "1", true),
            ("Origin", "https://a,", "https://a", false), ("Accept", ",,a/b", "a/b", true),
            ("Accept", "a/b;q=\"x , y\" ,c/d", "a/b;q=\"x , y\",c/d", true),
            ("Accept-Charset", "a ,b", "a,b", true), ("Accept", "a/b, c/d", "c/d, a/b", false),
            ("Accept-Language", "en, de", "de, en", true),
            ("Accept-Language", "en, de", "eN, De", true),
            ("Accept-Language", "en;q=0.5", "en; Q=0.5", true),
            ("Accept-Language", "en", "en;q=0.5", false),
            ("Accept-Encoding", "gzip, br", "BR,gzip", true),
            ("Accept-Encoding", "gzip", "identity", false),
            ("Authorization", "Basic eA==", "Basic eA==", true),
            ("Authorization", "Basic eA==", "Basic eB==", false),
        ]
    )
    func values(name: String, stored: String, presented: String, expected: Bool) throws {
        #expect(try matches(name, fields(name, stored), fields(name, presented)) == expected)
        #expect(try matches(name, fields(name, presented), fields(name, stored)) == expected)
    }

    @Test(
        "Who prefers the language of the response to all others gets it",
        arguments: [
            ("fr;q=0.5, de;q=1.0", true), ("DE", true), ("de, en;q=0.999", true),
            ("de, en", false), ("de;q=0", false), ("de;q=0.5, *", false),
            ("de-AT, de;q=0.9", false), ("de;q=2", false), ("de;level=1", false), ("", false),
        ]
    )
    func languages(_ accepted: String, expected: Bool) {
        let selecting = VaryMatch.selectingFields(
            response: [.vary: "Accept-Language, Accept"],
            request: [.acceptLanguage: "en, it"]
        )
        func matches(_ fields: HTTPFields, _ language: String?) -> Bool {
            VaryMatch.matches(selecting, request: fields, language: language)
        }
        #expect(matches([.acceptLanguage: accepted], "De") == expected)
        #expect(!matches([.acceptLanguage: accepted], nil))
        #expect(!matches([.acceptLanguage: accepted], "de, fr"))
        #expect(!matches([.acceptLanguage: accepted, .accept: "a/b"], "de"))
        #expect(!matches([:], "de"))
    }

    @Test("Lines of a list are joined; absent is not empty; others do not count")
    func presence() throws {
        #expect(try matches("Accept", fields("Accept", "1", "2"), fields("Accept", "1, 2")))
        #expect(try !matches("Foo", fields("Foo", "1", "2"), fields("Foo", "1, 2")))
        #expect(try matches("Foo", fields("Foo", "1", "2"), fields("Foo", "1", "2")))
        #expect(try !matches("Foo", fields("Foo", "1"), [:]))
        #expect(try !matches("Foo", [:], fields("Foo", "1")))
        #expect(try !matches("Foo", [:], fields("Foo", "")))
        #expect(matches("Foo", [:], [:]))
        #expect(try matches("Foo", fields("Bar", "1"), fields("Bar", "2")))
        #expect(try !matches("Bar, foo", fields("Foo", "1"), fields("FOO", "2")))
        #expect(VaryMatch.selectingFields(response: [:], request: [:]).isEmpty)
    }

    @Test("A star matches nothing", arguments: ["*", "*, *", ", *", "*, Foo", "Foo, *"])
    func star(vary: String) throws {
        #expect(try !matches(vary, fields("Foo", "1"), fields("Foo", "1")))
    }

    @Test("No value is kept")
    func secrets() throws {
        let request: HTTPFields = [
            .authorization: "Basic c2VjcmV0", .cookie: "id=c2VjcmV0", .accept: "a/b",
        ]
        let selecting = VaryMatch.selectingFields(
            response: [.vary: "Authorization, Cookie, Accept"],
            request: request
        )
        #expect(selecting.count == 3)
        #expect(selecting.allSatisfy { $0.digest?.count == 64 })
        #expect(VaryMatch.matches(selecting, request: request))
    }

    @Test("Hostile texts never trap, and always match themselves")
    func fuzz() throws {
        var random = SeededGenerator(seed: 30)
        let pieces = ["\"", "\\", ",", " ", "a", "B", "é", ";q=1", "*"]
        for _ in 0..<10_000 {
            let text = random.text(of: pieces, count: 9)
            let request = try fields("Foo", text)
            #expect(matches("foo", request, request), "\(text)")
        }
    }
}
