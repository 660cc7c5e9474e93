import HTTPCaching
import HTTPTypes
import Testing

@testable import TieredCache

/// One test per row of the table of request kind and response.
@Suite("What a response means", .timeLimit(.minutes(10)))
struct ResponseDispositionTests {
    static let now = WallTime(seconds: 1_767_225_600)
    static let tagged: HTTPFields = [.eTag: "\"v1\""]
    static let validator = Validator(of: tagged, responseTime: now)

    let generation = Generation(validator: validator, completeLength: 1000)
    let lengthless = Generation(validator: validator)

    func resume(_ lower: Int64 = 100, _ upper: Int64 = 1000) -> RequestKind {
        .resume(lower..<upper, generation)
    }

    func decide(
        _ status: Int,
        _ fields: HTTPFields = [:],
        to kind: RequestKind,
        generation: Generation? = nil,
        policy: DownloadPolicy = DownloadPolicy(),
        method: HTTPRequest.Method = .get
    ) -> ResponseDisposition {
        let stored = if case .resume(_, let generation) = kind { generation } else { generation }
        return ResponseDisposition(
            of: HTTPResponse(status: .init(code: status), headerFields: fields),
            to: kind,
            in: ResponseContext(
                method: method,
                generation: stored,
                responseTime: Self.now,
                policy: policy
            )
        )
    }

    func part(
        _ range: String,
        length: Int? = nil,
        tag: String? = "\"v1\"",
        _ more: HTTPFields = [:]
    ) -> HTTPFields {
        var fields = more
        fields[.contentRange] = range
        fields[.contentLength] = length.map(String.init)
        fields[.eTag] = tag
        return fields
    }

    func isUntrusted(_ disposition: ResponseDisposition) -> Bool {
        if case .restart(.rangesUntrusted) = disposition { true } else { false }
    }

    @Test("Row 1: F, 200 framed: a new generation from 0")
    func row1() {
        let start = GenerationStart(end: 1000, completeLength: 1000, validator: Self.validator)
        #expect(
            decide(200, [.eTag: "\"v1\"", .contentLength: "1000"], to: .full)
                == .newGeneration(start)
        )
        let chunked = GenerationStart(completeLength: nil, validator: nil)
        #expect(
            decide(200, [.eTag: "W/\"v1\"", .transferEncoding: "chunked"], to: .full)
                == .newGeneration(chunked)
        )
    }

    @Test("Row 2: F, 200 delimited by close: a new generation of unverified length")
    func row2() {
        let start = GenerationStart(
            completeLength: nil,
            validator: Self.validator,
            framing: .closeDelimited
        )
        #expect(decide(200, Self.tagged, to: .full) == .newGeneration(start))
    }

    @Test("Row 3: F, 206 unasked: once more, past caches")
    func row3() {
        let disposition = decide(206, part("bytes 0-999/1000"), to: .full)
        #expect(disposition == .restart(.violation("206 unasked")))
        #expect(
            decide(206, part("bytes 0-999/1000"), to: .revalidation)
                == .restart(.violation("206 unasked"))
        )
    }

    @Test("Row 4: R, 206 that agrees in every field: go on")
    func row4() {
        #expect(
            decide(206, part("bytes 100-999/1000", length: 900), to: resume())
                == .continuing(100..<1000, completeLength: 1000)
        )
        let kind = RequestKind.resume(100..<Int64.max, lengthless)
        #expect(
            decide(206, part("bytes 100-999/1000"), to: kind)
                == .continuing(100..<1000, completeLength: 1000)
        )
    }

    @Test("Row 5: R, 206 with less than asked: take it, ask for the rest")
    func row5() {
        #expect(
            decide(206, part("bytes 100-199/1000", length: 100), to: resume())
                == .continuing(100..<200, completeLength: 1000)
        )
    }

    @Test("Row 6: R, 206 of unknown complete length: what is known stays")
    func row6() {
        #expect(
            decide(206, part("bytes 100-199/*"), to: resume())
                == .continuing(100..<200, completeLength: 1000)
        )
        let kind = RequestKind.resume(100..<Int64.max, lengthless)
        #expect(
            decide(206, part("bytes 100-199/*"), to: kind)
                == .continuing(100..<200, completeLength: nil)
        )
        #expect(
            decide(206, part("bytes 100-1000/*"), to: resume(100, 2000))
                == .restart(.representationChanged)
        )
    }

    @Test("Row 7: R, 206 of another range: ranges are not trusted")
    func row7() {
        for range in ["bytes 0-999/1000", "bytes 99-999/1000", "bytes 101-999/1000"] {
            #expect(isUntrusted(decide(206, part(range), to: resume())))
        }
        #expect(isUntrusted(decide(206, part("bytes 100-300/1000"), to: resume(100, 200))))
    }

    @Test("Row 8: R, 206 of another length or validator: the representation changed")
    func row8() throws {
        let changed = ResponseDisposition.restart(.representationChanged)
        #expect(decide(206, part("bytes 100-999/1001"), to: resume()) == changed)
        #expect(decide(206, part("bytes 100-999/1000", tag: "\"v2\""), to: resume()) == changed)
        #expect(decide(206, part("bytes 100-999/1000", tag: "W/\"v1\""), to: resume()) == changed)
        let date = "Wed, 31 Dec 2025 00:00:00 GMT"
        let dated = try #require(
            Validator(
                of: [.lastModified: date, .date: "Thu, 01 Jan 2026 00:00:00 GMT"],
                responseTime: Self.now
            )
        )
        let kind = RequestKind.resume(
            100..<1000,
            Generation(validator: dated, completeLength: 1000)
        )
        let other: HTTPFields = [.lastModified: "Tue, 30 Dec 2025 00:00:00 GMT"]
        #expect(decide(206, part("bytes 100-999/1000", tag: nil, other), to: kind) == changed)
        let same: HTTPFields = [.lastModified: date]
        #expect(
            decide(206, part("bytes 100-999/1000", tag: nil, same), to: kind)
                == .continuing(100..<1000, completeLength: 1000)
        )
    }

    @Test("Row 9: R, 206 without the tag: lenient goes on, strict does not")
    func row9() {
        let fields = part("bytes 100-999/1000", tag: nil)
        #expect(decide(206, fields, to: resume()) == .continuing(100..<1000, completeLength: 1000))
        var strict = DownloadPolicy()
        strict.isLenient = false
        #expect(
            decide(206, fields, to: resume(), policy: strict) == .restart(.representationChanged)
        )
    }

    @Test("Row 10: R, 206 whose range is missing or impossible: ranges are not trusted")
    func row10() {
        let ranges = [
            "items 100-999/1000", "bytes 999-100/1000", "bytes 100-999/999", "bytes */1000",
            "bytes 100-99999999999999999999/*", "bytes -5-9/10", "x", "",
        ]
        for range in ranges {
            #expect(isUntrusted(decide(206, part(range), to: resume())), "\(range)")
        }
        #expect(isUntrusted(decide(206, Self.tagged, to: resume())))
        #expect(isUntrusted(decide(206, part("bytes 100-999/1000", length: 901), to: resume())))
        #expect(isUntrusted(decide(206, part("bytes 100-999/1000"), to: .initialRange(0..<9))))
    }

    @Test("Row 11: R, multipart: ranges are not trusted")
    func row11() {
        let type: HTTPFields = [.contentType: "Multipart/Byteranges; boundary=x"]
        #expect(
            isUntrusted(
                decide(206, part("bytes 100-999/1000", tag: "\"v1\"", type), to: resume())
            )
        )
    }

    @Test("Row 12: R, 206 of a coded representation: ranges are not trusted")
    func row12() {
        let coded: HTTPFields = [.contentEncoding: "gzip"]
        #expect(
            isUntrusted(
                decide(206, part("bytes 100-999/1000", tag: "\"v1\"", coded), to: resume())
            )
        )
    }

    @Test("Row 13: R, 200: this body is the new generation, or the same again")
    func row13() {
        let other: HTTPFields = [.eTag: "\"v2\"", .contentLength: "2000"]
        let start = GenerationStart(
            end: 2000,
            completeLength: 2000,
            validator: Validator(of: other, responseTime: Self.now)
        )
        #expect(decide(200, other, to: resume()) == .newGeneration(start))
        #expect(
            decide(200, [.eTag: "\"v1\"", .contentLength: "1000"], to: resume())
                == .repeating(completeLength: 1000, comparing: 0)
        )
        // Without an equal length or a tag nothing says that these are the same bytes.
        for fields: HTTPFields in [
            [.eTag: "\"v1\"", .contentLength: "999"],
            [.eTag: "W/\"v1\"", .contentLength: "1000"], [.contentLength: "1000"],
        ] {
            guard case .newGeneration = decide(200, fields, to: resume()) else {
                Issue.record("\(fields)")
                continue
            }
        }
    }

    @Test("Row 13 with a date, or without a length: what proves that the bytes are the same")
    func row13Witnesses() {
        let chunked: HTTPFields = [.eTag: "\"v1\"", .transferEncoding: "chunked"]
        #expect(decide(200, chunked, to: resume()) == .repeating(completeLength: nil, comparing: 0))
        #expect(
            decide(200, Self.tagged, to: resume()) == .repeating(completeLength: nil, comparing: 0)
        )
        let old: HTTPFields = [.lastModified: "Sun, 06 Nov 2005 08:49:37 GMT"]
        let dated = Generation(
            validator: Validator(of: old, responseTime: Self.now),
            completeLength: 1000
        )
        func answer(
            _ fields: HTTPFields,
            to generation: Generation,
            at relation: ResourceRelation = .same
        ) -> ResponseDisposition {
            var context = ResponseContext(generation: generation, responseTime: Self.now)
            context.relation = relation
            context.comparablePrefix = 500
            return ResponseDisposition(
                of: HTTPResponse(status: .ok, headerFields: fields),
                to: .resume(100..<1000, generation),
                in: context
            )
        }
        var whole = old
        whole[.contentLength] = "1000"
        #expect(answer(whole, to: dated) == .repeating(completeLength: 1000, comparing: 0))
        #expect(
            answer(whole, to: dated, at: .otherQuery)
                == .repeating(completeLength: 1000, comparing: 500)
        )
        var (shorter, later, tagged) = (whole, whole, whole)
        shorter[.contentLength] = "999"
        later[.lastModified] = "Sun, 06 Nov 2005 08:49:38 GMT"
        tagged[.eTag] = "W/\"1\""
        var chunkedDate = old
        chunkedDate[.transferEncoding] = "chunked"
        let lengthless = Generation(validator: dated.validator)
        let others = [
            answer(shorter, to: dated), answer(later, to: dated), answer(tagged, to: dated),
            answer(chunkedDate, to: dated), answer(whole, to: lengthless),
            answer(whole, to: dated, at: .other),
        ]
        for (index, disposition) in others.enumerated() {
            guard case .newGeneration = disposition else {
                Issue.record("case \(index): \(disposition)")
                continue
            }
        }
    }

    @Test("Row 15: R, 416 with a length: complete, changed, or inconsistent")
    func row15() {
        let kind = RequestKind.resume(1000..<Int64.max, lengthless)
        #expect(
            decide(416, [.contentRange: "bytes */1000"], to: kind) == .alreadyComplete(length: 1000)
        )
        let changed = ResponseDisposition.restart(.representationChanged)
        #expect(decide(416, [.contentRange: "bytes */900"], to: kind) == changed)
        #expect(decide(416, [.contentRange: "bytes */50"], to: resume()) == changed)
        #expect(isUntrusted(decide(416, [.contentRange: "bytes */1000"], to: resume())))
        #expect(
            decide(416, [.contentRange: "bytes */50"], to: .initialRange(100..<Int64.max))
                == .rangeNotSatisfiable(completeLength: 50)
        )
        #expect(isUntrusted(decide(416, [.contentRange: "bytes */0"], to: .initialRange(0..<9))))
        #expect(isUntrusted(decide(416, [.contentRange: "bytes */50"], to: .initialRange(9..<20))))
    }

    @Test("Row 16: R, 416 without a length: all of it, once")
    func row16() {
        #expect(isUntrusted(decide(416, to: resume())))
        #expect(isUntrusted(decide(416, [.contentRange: "bytes 0-1/2"], to: resume())))
        #expect(decide(416, to: .full) == .unsuccessful)
    }

    @Test("Row 17: 412: the representation changed")
    func row17() {
        #expect(decide(412, to: resume()) == .restart(.representationChanged))
        #expect(decide(412, to: .full) == .unsuccessful)
    }

    @Test("Row 18: revalidation, 304: what is stored is current")
    func row18() {
        #expect(decide(304, Self.tagged, to: .revalidation) == .notModified)
        #expect(decide(304, Self.tagged, to: .full) == .restart(.violation("304 unasked")))
        let start = GenerationStart(end: 1000, completeLength: 1000, validator: Self.validator)
        #expect(
            decide(
                200,
                [.eTag: "\"v1\"", .contentLength: "1000"],
                to: .revalidation,
                generation: generation
            ) == .newGeneration(start)
        )
    }

    @Test(
        "Rows 20 and 21: final statuses",
        arguments: [400, 401, 403, 404, 405, 407, 410, 451, 501]
    )
    func rows20And21(status: Int) {
        for kind in [.full, resume(), .initialRange(5..<9), .revalidation] {
            #expect(decide(status, to: kind) == .unsuccessful)
        }
        #expect(decide(204, to: resume()) == .unsuccessful)
    }

    @Test("Row 22: transient statuses", arguments: [408, 425, 429, 500, 502, 503, 504, 522, 524])
    func row22(status: Int) {
        #expect(decide(status, to: resume()) == .retry(after: nil))
        #expect(decide(status, [.retryAfter: "7"], to: .full) == .retry(after: .seconds(7)))
        #expect(
            decide(status, [.retryAfter: "999999999"], to: .full) == .retry(after: .seconds(60))
        )
        #expect(decide(status, [.retryAfter: "soon"], to: .full) == .retry(after: nil))
    }
}
