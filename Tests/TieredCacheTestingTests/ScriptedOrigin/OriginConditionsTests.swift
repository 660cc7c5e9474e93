import HTTPTypes
import TestParts
import Testing

@testable import TieredCacheTesting

@Suite("The origin's conditional rules", .tags(.realTime), .timeLimit(.minutes(10)))
struct OriginConditionsTests {
    private let resource: OriginResource = {
        var resource = OriginResource.generated(length: 100)
        resource.entityTag = .custom("\"a\"")
        resource.lastModified = "Sat, 21 Nov 2026 00:00:00 GMT"
        return resource
    }()

    @Test(
        "Range",
        arguments: [
            ("bytes=0-9", .part(0..<10)), ("bytes=90-", .part(90..<100)),
            ("bytes=-5", .part(95..<100)), ("bytes=-500", .part(0..<100)),
            ("bytes=50-9223372036854775807", .part(50..<100)),
            ("bytes=50-99999999999999999999999", .part(50..<100)),
            ("bytes=99-99", .part(99..<100)), ("BYTES= 1-2 ", .part(1..<3)),
            ("bytes=100-", .unsatisfiable), ("bytes=-0", .unsatisfiable),
            ("bytes=99999999999999999999999-", .unsatisfiable),
            ("bytes=5-4", .whole), ("bytes=0-1,4-5", .whole), ("bytes=a-b", .whole),
            ("bytes=-", .whole), ("bytes=1", .whole), ("items=0-1", .whole), ("bytes=1-x", .whole),
        ] as [(String, OriginConditions.Selection)]
    )
    func ranges(field: String, expected: OriginConditions.Selection) {
        #expect(OriginConditions.selection(field, length: 100) == expected)
    }

    @Test("No range of nothing, and none without the field")
    func emptyRepresentation() {
        #expect(OriginConditions.selection("bytes=0-", length: 0) == .unsatisfiable)
        #expect(OriginConditions.selection("bytes=-1", length: 0) == .unsatisfiable)
        #expect(OriginConditions.selection(nil, length: 0) == .whole)
    }

    @Test(
        "304",
        arguments: [
            ([.ifNoneMatch: "\"a\""], true), ([.ifNoneMatch: "W/\"a\""], true),
            ([.ifNoneMatch: "\"b\", \"a\""], true), ([.ifNoneMatch: "*"], true),
            ([.ifNoneMatch: "\"b\""], false), ([:], false),
            ([.ifModifiedSince: "Sat, 21 Nov 2026 00:00:00 GMT"], true),
            ([.ifModifiedSince: "Sun, 22 Nov 2026 00:00:00 GMT"], false),
            (
                [
                    .ifNoneMatch: "\"b\"",
                    .ifModifiedSince: "Sat, 21 Nov 2026 00:00:00 GMT",
                ], false
            ),
        ] as [(HTTPFields, Bool)]
    )
    func notModified(fields: HTTPFields, expected: Bool) {
        #expect(
            OriginConditions.isNotModified(
                request: OriginRequest(fields: fields),
                resource: resource
            ) == expected
        )
    }

    @Test(
        "412",
        arguments: [
            ([.ifMatch: "\"a\""], false), ([.ifMatch: "\"b\", \"a\""], false),
            ([.ifMatch: "*"], false), ([.ifMatch: "\"b\""], true), ([.ifMatch: "W/\"a\""], true),
            ([.ifUnmodifiedSince: "Sat, 21 Nov 2026 00:00:00 GMT"], false),
            ([.ifUnmodifiedSince: "Fri, 20 Nov 2026 00:00:00 GMT"], true), ([:], false),
        ] as [(HTTPFields, Bool)]
    )
    func preconditions(fields: HTTPFields, expected: Bool) {
        let request = OriginRequest(fields: fields)
        #expect(
            OriginConditions.failsPrecondition(request: request, resource: resource) == expected
        )
    }

    @Test(
        "If-Range",
        arguments: [
            ([:], true), ([.ifRange: "\"a\""], true), ([.ifRange: "\"b\""], false),
            ([.ifRange: "W/\"a\""], false),
            ([.ifRange: "Sat, 21 Nov 2026 00:00:00 GMT"], true),
            ([.ifRange: "Sat, 21 Nov 2026 00:00:01 GMT"], false),
        ] as [(HTTPFields, Bool)]
    )
    func ifRange(fields: HTTPFields, expected: Bool) {
        #expect(
            OriginConditions.allowsPart(request: OriginRequest(fields: fields), resource: resource)
                == expected
        )
    }
}

extension HTTPField.Name {
    /// Not among the names that HTTPTypes knows.
    static let ifMatch = HTTPField.Name("If-Match") ?? .eTag
}
