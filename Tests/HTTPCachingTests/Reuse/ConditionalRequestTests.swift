import HTTPCaching
import HTTPTypes
import Testing

@Suite("ConditionalRequest", .timeLimit(.minutes(10)))
struct ConditionalRequestTests {
    @Test("Validators are sent back verbatim")
    func verbatim() {
        let both: HTTPFields = [.eTag: "W/\"a\"", .lastModified: "yesterday", .date: "x"]
        #expect(
            ConditionalRequest.fields(validating: both)
                == [.ifNoneMatch: "W/\"a\"", .ifModifiedSince: "yesterday"]
        )
        #expect(ConditionalRequest.fields(validating: [.eTag: "abc"]) == [.ifNoneMatch: "abc"])
        #expect(ConditionalRequest.fields(validating: [.date: "x"]).isEmpty)
    }

    @Test("The tags of several responses are offered together, each once")
    func severalTags() {
        let stored: [HTTPFields] = [
            [.eTag: "\"a\""], [.lastModified: "x"], [.eTag: "W/\"b\""], [.eTag: "\"a\""],
        ]
        let fields = ConditionalRequest.fields(selectingAmong: stored)
        #expect(fields == [.ifNoneMatch: "\"a\", W/\"b\""])
        #expect(ConditionalRequest.fields(selectingAmong: [[:]]).isEmpty)
    }

    @Test("The application's own conditions do not reach the origin")
    func removing() {
        let fields: HTTPFields = [
            .ifNoneMatch: "\"x\"", .ifModifiedSince: "d", .ifRange: "\"x\"", .range: "bytes=0-",
        ]
        #expect(ConditionalRequest.removingConditions(from: fields) == [.range: "bytes=0-"])
    }
}

@Suite("Precondition", .timeLimit(.minutes(10)))
struct PreconditionTests {
    private let stored: HTTPFields = [
        .eTag: "W/\"a\"", .lastModified: WallTime.date(-100), .date: WallTime.date(0),
    ]

    private func evaluate(_ request: HTTPFields, _ stored: HTTPFields) -> Precondition {
        .evaluate(request: request, storedFields: stored, stored: .make(200, stored))
    }

    @Test("If-None-Match compares weakly and goes first")
    func ifNoneMatch() {
        #expect(evaluate([.ifNoneMatch: "\"a\""], stored) == .notModified)
        #expect(evaluate([.ifNoneMatch: "\"b\", W/\"a\""], stored) == .notModified)
        #expect(evaluate([.ifNoneMatch: "*"], stored) == .notModified)
        #expect(evaluate([.ifNoneMatch: "\"b\""], stored) == .passes)
        #expect(evaluate([.ifNoneMatch: "a"], stored) == .passes)
        #expect(evaluate([.ifNoneMatch: "\"a\""], [.date: WallTime.date(0)]) == .passes)
        let both: HTTPFields = [.ifNoneMatch: "\"b\"", .ifModifiedSince: WallTime.date(0)]
        #expect(evaluate(both, stored) == .passes)
    }

    @Test("If-Modified-Since compares with Last-Modified, else with Date")
    func ifModifiedSince() {
        #expect(evaluate([.ifModifiedSince: WallTime.date(-100)], stored) == .notModified)
        #expect(evaluate([.ifModifiedSince: WallTime.date(-101)], stored) == .passes)
        #expect(evaluate([.ifModifiedSince: "never"], stored) == .passes)
        let dated: HTTPFields = [.date: WallTime.date(-5)]
        #expect(evaluate([.ifModifiedSince: WallTime.date(-5)], dated) == .notModified)
        #expect(evaluate([.ifModifiedSince: WallTime.date(-6)], dated) == .passes)
    }

    @Test("What only the origin can tell goes to the origin")
    func forOrigin() {
        #expect(evaluate([.ifMatch: "\"a\""], stored) == .forOrigin)
        #expect(evaluate([.ifUnmodifiedSince: WallTime.date(0)], stored) == .forOrigin)
        #expect(evaluate([:], stored) == .passes)
    }

    @Test("If-Range needs the very same strong validator")
    func ifRange() {
        let tag = Validator(of: [.eTag: "\"a\""], responseTime: received)
        let day = Validator(
            of: [.lastModified: WallTime.date(-100), .date: WallTime.date(0)],
            responseTime: received
        )
        #expect(Precondition.rangeApplies(request: [:], validator: nil))
        #expect(Precondition.rangeApplies(request: [.ifRange: "\"a\""], validator: tag))
        #expect(!Precondition.rangeApplies(request: [.ifRange: "W/\"a\""], validator: tag))
        #expect(!Precondition.rangeApplies(request: [.ifRange: "\"b\""], validator: tag))
        #expect(!Precondition.rangeApplies(request: [.ifRange: "\"a\""], validator: nil))
        let same: HTTPFields = [.ifRange: WallTime.date(-100)]
        #expect(Precondition.rangeApplies(request: same, validator: day))
        let later: HTTPFields = [.ifRange: WallTime.date(-99)]
        #expect(!Precondition.rangeApplies(request: later, validator: day))
        #expect(!Precondition.rangeApplies(request: same, validator: tag))
    }
}
