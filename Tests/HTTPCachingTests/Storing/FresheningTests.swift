import HTTPCaching
import HTTPTypes
import Testing

@Suite("Freshening", .timeLimit(.minutes(10)))
struct FresheningTests {
    @Test(
        "What a 304 is about",
        arguments: [
            ("\"a\"", "\"a\"", true), ("\"a\"", "\"b\"", false), ("W/\"a\"", "W/\"a\"", true),
            ("W/\"a\"", "\"a\"", true), ("\"a\"", "W/\"a\"", false), ("abc", "abc", true),
            ("abc", "abd", false), ("\"a\"", nil, false), (nil, "\"a\"", true), (nil, nil, true),
        ] as [(String?, String?, Bool)]
    )
    func tags(answer: String?, stored: String?, expected: Bool) {
        var answerFields = HTTPFields()
        answerFields[.eTag] = answer
        var storedFields = HTTPFields()
        storedFields[.eTag] = stored
        #expect(Freshening.identifies(answerFields, storedFields: storedFields) == expected)
    }

    @Test("Without a tag, the date tells")
    func dates() {
        let stored: HTTPFields = [.eTag: "\"a\"", .lastModified: "x"]
        #expect(Freshening.identifies([.lastModified: "x"], storedFields: stored))
        #expect(!Freshening.identifies([.lastModified: "y"], storedFields: stored))
        #expect(Freshening.identifies([.eTag: "\"a\"", .lastModified: "y"], storedFields: stored))
        #expect(Freshening.identifies([.lastModified: "x"], storedFields: [:]))
    }

    @Test("Validators and the length that HEAD names must be those stored")
    func head() {
        let stored: HTTPFields = [.eTag: "\"a\"", .contentLength: "5"]
        let answer: HTTPFields = [.eTag: "\"a\"", .contentLength: "5"]
        #expect(Freshening.identifies(head: answer, storedFields: stored))
        #expect(Freshening.identifies(head: [.eTag: "\"a\""], storedFields: stored))
        #expect(Freshening.identifies(head: [:], storedFields: stored))
        #expect(Freshening.identifies(head: [.contentLength: "5"], storedFields: stored))
        #expect(!Freshening.identifies(head: [.contentLength: "6"], storedFields: stored))
        #expect(!Freshening.identifies(head: [.lastModified: "x"], storedFields: stored))
        let longer: HTTPFields = [.eTag: "\"a\"", .contentLength: "6"]
        #expect(!Freshening.identifies(head: longer, storedFields: stored))
        let other: HTTPFields = [.eTag: "\"b\"", .contentLength: "5"]
        #expect(!Freshening.identifies(head: other, storedFields: stored))
    }

    @Test("Fields of the answer take the place of their namesakes")
    func updating() throws {
        let extra = try #require(HTTPField.Name("X-Extra"))
        let stored: HTTPFields = [
            .contentType: "video/mp4", .contentLength: "100", .eTag: "W/\"a\"",
            .cacheControl: "max-age=1", .age: "50", .date: WallTime.date(-50), extra: "1",
        ]
        var answer: HTTPFields = [
            .contentType: "text/html", .contentLength: "0", .contentEncoding: "gzip",
            .contentRange: "bytes 0-0/1", .connection: "close", .date: WallTime.date(0),
            .contentLanguage: "en",
        ]
        answer[values: .cacheControl] = ["max-age=9", "public"]
        let updated = Freshening.updated(stored, with: answer, rules: CacheRules())
        var expected: HTTPFields = [
            .contentType: "video/mp4", .contentLength: "100", .eTag: "W/\"a\"", extra: "1",
            .date: WallTime.date(0), .contentLanguage: "en",
        ]
        expected[values: .cacheControl] = ["max-age=9", "public"]
        #expect(updated == expected)
    }

    @Test("An answer without Date is as young as its receipt")
    func missingDate() {
        let stored: HTTPFields = [.cacheControl: "max-age=9", .date: WallTime.date(-500)]
        let updated = Freshening.updated(stored, with: [:], rules: CacheRules())
        #expect(updated == [.cacheControl: "max-age=9"])
        #expect(CurrentAge.of(.make(200, updated), at: received) == .zero)
    }
}
