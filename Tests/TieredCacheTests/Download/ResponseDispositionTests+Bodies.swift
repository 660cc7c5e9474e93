import HTTPCaching
import HTTPTypes
import Testing

@testable import TieredCache

// Responses with a body that is coded, framed or meant in another way.
extension ResponseDispositionTests {
    @Test("Row 23: 203: a final object that nothing is joined to")
    func row23() {
        let start = GenerationStart(end: 9, completeLength: 9, validator: nil)
        #expect(
            decide(203, [.eTag: "\"v1\"", .contentLength: "9"], to: .full) == .newGeneration(start)
        )
    }

    @Test("Transfer codings beside chunked, and protocols, that were not asked for")
    func unaskedCodings() {
        for coding in ["gzip, chunked", "gzip", "chunked, chunked"] {
            for kind in [RequestKind.full, resume()] {
                guard case .unusable = decide(200, [.transferEncoding: coding], to: kind) else {
                    Issue.record("\(coding) to \(kind)")
                    continue
                }
            }
        }
        let plain = GenerationStart(
            completeLength: nil,
            validator: nil,
            framing: .closeDelimited
        )
        #expect(decide(200, [.transferEncoding: "Identity"], to: .full) == .newGeneration(plain))
        guard case .unusable = decide(101, to: .full) else {
            Issue.record("101 is no answer")
            return
        }
    }

    @Test("300 without a place to go on at: its body is the answer, but not to a range")
    func multipleChoices() {
        let start = GenerationStart(end: 9, completeLength: 9, validator: nil)
        #expect(decide(300, [.contentLength: "9"], to: .full) == .newGeneration(start))
        #expect(decide(300, [.contentLength: "9"], to: resume()) == .unsuccessful)
    }

    @Test("Row 26: a coded body despite identity: decoded, and nothing is joined to it")
    func row26() {
        for (name, coding) in [
            ("gzip", ContentCoding.gzip), ("X-GZIP", .gzip), ("identity, deflate", .deflate),
            ("utf-8, gzip", .gzip),
        ] {
            let start = GenerationStart(completeLength: nil, validator: nil, coding: coding)
            #expect(
                decide(
                    200,
                    [.eTag: "\"v1\"", .contentLength: "9", .contentEncoding: name],
                    to: .full
                ) == .newGeneration(start)
            )
        }
        for name in ["br", "gzip, gzip", "zstd", "utf-8, br"] {
            guard case .unusable = decide(200, [.contentEncoding: name], to: .full) else {
                Issue.record("\(name)")
                continue
            }
        }
    }

    @Test(
        "A coding that is none changes nothing",
        arguments: ["utf-8", "UTF-8", "none", "binary", "8bit", "identity, utf-8", "", ","]
    )
    func noCoding(_ name: String) {
        let fields: HTTPFields = [.eTag: "\"v1\"", .contentLength: "9"]
        var named = fields
        named[.contentEncoding] = name
        #expect(decide(200, named, to: .full) == decide(200, fields, to: .full))
        var part = fields
        part[.contentRange] = "bytes 0-8/20"
        var namedPart = part
        namedPart[.contentEncoding] = name
        let kind = RequestKind.initialRange(0..<9)
        #expect(decide(206, namedPart, to: kind) == decide(206, part, to: kind))
    }

    @Test("A Content-Length that is none cannot be framed")
    func badLength() {
        for text in ["-1", "1, 2", "99999999999999999999", "x"] {
            guard case .unusable = decide(200, [.contentLength: text], to: .full) else {
                Issue.record("\(text)")
                continue
            }
        }
    }
}
