import HTTPCaching
import HTTPTypes
import Testing

@Suite("Validator", .timeLimit(.minutes(10)))
struct ValidatorTests {
    private let received = WallTime(seconds: 1_000_000_000)
    private let modified = "Sun, 09 Sep 2001 01:46:00 GMT"  // 40 s before `received`
    private let date = "Sun, 09 Sep 2001 01:46:01 GMT"

    private func validator(_ fields: HTTPFields) -> Validator? {
        Validator(of: fields, responseTime: received)
    }

    @Test("A strong tag is one, verbatim, whatever else there is")
    func strongTag() {
        let validator = validator([.eTag: "\"a\"", .lastModified: modified, .date: date])
        #expect(validator?.kind == EntityTag("\"a\"").map(Validator.Kind.entityTag))
        #expect(validator?.ifRangeValue == "\"a\"")
    }

    @Test("With a tag that is not strong, not even the date counts")
    func weakTag() {
        for tag in ["W/\"a\"", "unquoted", "", "\"a\", \"b\""] {
            #expect(validator([.eTag: tag, .lastModified: modified, .date: date]) == nil)
        }
    }

    @Test("A date is strong from one second before Date")
    func strongDate() {
        let validator = validator([.lastModified: modified, .date: date])
        #expect(validator?.kind == .lastModified)
        #expect(validator?.ifRangeValue == modified)
        #expect(self.validator([.lastModified: modified, .date: modified]) == nil)
        #expect(self.validator([.lastModified: date, .date: modified]) == nil)
        #expect(self.validator([.lastModified: "yesterday", .date: date]) == nil)
        #expect(self.validator([:]) == nil)
    }

    @Test("Without Date, a minute must lie before the receipt")
    func missingDate() {
        #expect(validator([.lastModified: modified]) == nil)
        #expect(validator([.lastModified: "Sun, 09 Sep 2001 01:45:40 GMT"]) != nil)
    }

    @Test("Comparison with another response")
    func comparison() throws {
        let tag = try #require(validator([.eTag: "\"a\""]))
        #expect(tag.comparison(with: [.eTag: "\"a\""]) == .same)
        #expect(tag.comparison(with: [.eTag: "W/\"a\""]) == .different)
        #expect(tag.comparison(with: [.eTag: "a"]) == .different)
        #expect(tag.comparison(with: [.lastModified: modified]) == .absent)
        let day = try #require(validator([.lastModified: modified, .date: date]))
        #expect(day.comparison(with: [.lastModified: modified]) == .same)
        #expect(day.comparison(with: [.lastModified: date]) == .different)
        #expect(day.comparison(with: [.eTag: "\"a\""]) == .absent)
    }
}
