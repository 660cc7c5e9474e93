import HTTPTypes
import NIOCore
import Testing

@testable import HTTPTransport

/// The table of docs/transport.md, a case a row.
@Suite("Syntax of responses")
struct ResponseSyntaxTests {
    struct Taken: CustomTestStringConvertible {
        let what: String
        let bytes: String
        var status = 200
        /// Fields that the head has, others are not looked at.
        var fields: [String: String] = [:]
        var body = "hello"
        var isKept = true

        var testDescription: String { what }
    }

    static let taken = [
        Taken(what: "a length", bytes: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        Taken(
            what: "a length of nothing",
            bytes: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            body: ""
        ),
        Taken(
            what: "a length twice",
            bytes: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\nhello"
        ),
        Taken(
            what: "a length twice in a field",
            bytes: "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello"
        ),
        Taken(
            what: "a length with zeros in front",
            bytes: "HTTP/1.1 200 OK\r\nContent-Length: 05\r\n\r\nhello"
        ),
        Taken(
            what: "a space before the colon",
            bytes: "HTTP/1.1 200 OK\r\nContent-Length \t: 5\r\n\r\nhello",
            fields: ["Content-Length": "5"]
        ),
        Taken(
            what: "no space behind the colon, spaces behind the value",
            bytes: "HTTP/1.1 200 OK\r\nX-A:b \t\r\nContent-Length:5 \r\n\r\nhello",
            fields: ["X-A": "b"]
        ),
        Taken(
            what: "folds",
            bytes:
                "HTTP/1.1 200 OK\r\nCache-Control: public,\r\n \t no-store\r\n\tx\r\n"
                + "Content-Length:\r\n 5\r\n\r\nhello",
            fields: ["Cache-Control": "public, no-store x", "Content-Length": "5"]
        ),
        Taken(
            what: "a fold that is a space alone",
            bytes: "HTTP/1.1 200 OK\r\nX-A: b\r\n \r\nContent-Length: 5\r\n\r\nhello",
            fields: ["X-A": "b"]
        ),
        Taken(
            what: "lines that end in LF",
            bytes: "HTTP/1.1 200 OK\nContent-Length: 5\nX-A: b\n\nhello",
            fields: ["X-A": "b"]
        ),
        Taken(
            what: "lines that end in either",
            bytes: "HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\nhello"
        ),
        Taken(
            what: "empty lines before the status line",
            bytes: "\r\n\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        ),
        Taken(what: "no reason", bytes: "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello"),
        Taken(
            what: "a reason that is empty, or no text",
            bytes: "HTTP/1.1 404 \r\nContent-Length: 5\r\n\r\nhello",
            status: 404
        ),
        Taken(
            what: "several spaces in the status line",
            bytes: "HTTP/1.1  206   Partial Content\r\nContent-Length: 5\r\n\r\nhello",
            status: 206
        ),
        Taken(
            what: "a version above 1.1",
            bytes: "HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        ),
        Taken(what: "ICY", bytes: "ICY 200 OK\r\n\r\nhello", isKept: false),
        Taken(
            what: "ICY with a length",
            bytes: "ICY 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            isKept: false
        ),
        Taken(what: "a close", bytes: "HTTP/1.1 200 OK\r\n\r\nhello", isKept: false),
        Taken(
            what: "`identity`, which is none",
            bytes: "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhello",
            isKept: false
        ),
        Taken(
            what: "a coding that is unknown",
            bytes: "HTTP/1.1 200 OK\r\nTransfer-Encoding: qwertz\r\n\r\nhello",
            isKept: false
        ),
        Taken(
            what: "HTTP/1.0",
            bytes: "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            isKept: false
        ),
        Taken(
            what: "HTTP/1.0 that is kept",
            bytes: "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello"
        ),
        Taken(
            what: "a list of connection options",
            bytes: "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 5\r\n\r\nhello",
            isKept: false
        ),
        Taken(
            what: "chunks",
            bytes:
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
        ),
        Taken(
            what: "chunks in any case of letters, with extensions",
            bytes: "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
                + "00000A;a=\"b\"\r\nhellohello\r\n0;x\r\n\r\n",
            body: "hellohello"
        ),
        Taken(
            what: "spaces behind the size of a chunk",
            bytes:
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5  \r\nhello\r\n0 \t\r\n\r\n"
        ),
        Taken(
            what: "chunks whose lines end in LF",
            bytes: "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n0\n\n"
        ),
        Taken(
            what: "trailers, which are dropped",
            bytes: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "5\r\nhello\r\n0\r\nContent-Length: 9\r\nX: y\r\n\r\n"
        ),
        Taken(
            what: "chunks in HTTP/1.0",
            bytes: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "5\r\nhello\r\n0\r\n\r\n",
            isKept: false
        ),
        Taken(
            what: "304 with a length",
            bytes: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            status: 304,
            body: ""
        ),
        Taken(
            what: "204 with a length",
            bytes: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
            status: 204,
            body: ""
        ),
        Taken(
            what: "bytes of a reference that are no text",
            bytes: "HTTP/1.1 302 Found\r\nLocation: /caf\u{1}\r\nContent-Length: 0\r\n\r\n",
            status: 302,
            fields: ["Location": "/caf%E9"],
            body: ""
        ),
        Taken(
            what: "control characters, which become spaces",
            bytes: "HTTP/1.1 200 OK\r\nX-A: b\u{7}c\u{7F}d\r\nContent-Length: 5\r\n\r\nhello",
            fields: ["X-A": "b c d"]
        ),
        Taken(
            what: "a field without a value",
            bytes: "HTTP/1.1 200 OK\r\nX-A:\r\nContent-Length: 5\r\n\r\nhello",
            fields: ["X-A": ""]
        ),
        Taken(
            what: "interim responses before",
            bytes: "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        ),
        Taken(
            what: "101, which is final",
            bytes: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
            status: 101,
            body: "",
            isKept: false
        ),
    ]

    @Test("is taken", arguments: taken)
    func takes(row: Taken) {
        // Swift's strings hold no byte by itself that is no text.
        let bytes = row.bytes.utf8.map { $0 == 1 ? 0xE9 : $0 }
        for size in [Int.max, 1, 2, 3, 7] {
            let reading = ResponseReading(bytes, pieces: size)
            #expect(reading.refusal == nil)
            #expect(reading.statuses.last == row.status)
            for (name, value) in row.fields {
                #expect(reading.fields.first { $0.name == name }?.value == value)
            }
            #expect(String(decoding: reading.body, as: UTF8.self) == row.body)
            #expect(reading.hasEnded)
            #expect(reading.mayPersist == row.isKept)
        }
    }

    struct Refused: CustomTestStringConvertible {
        let what: String
        let bytes: String
        let error: ResponseSyntaxError

        init(_ what: String, _ error: ResponseSyntaxError, _ bytes: String) {
            (self.what, self.error, self.bytes) = (what, error, bytes)
        }

        var testDescription: String { what }
    }

    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    static let refused = [
        Refused("another protocol", .noStatusLine, "SSH-2.0-OpenSSH_9.2\r\n"),
        Refused("no status line", .noStatusLine, "hello"),
        Refused("HTTP/2", .noStatusLine, "HTTP/2 200 OK\r\n\r\n"),
        Refused("no status", .noStatusLine, "HTTP/1.1 abc OK\r\n\r\n"),
        Refused("a status of four digits", .noStatusLine, "HTTP/1.1 2000 OK\r\n\r\n"),
        Refused("a reason at the status", .noStatusLine, "HTTP/1.1 200OK\r\n\r\n"),
        Refused("a status below 100", .lowStatus, "HTTP/1.1 099 Nothing\r\n\r\n"),
        Refused("NUL in the reason", .controlCharacter, "HTTP/1.1 200 a\0b\r\n\r\n"),
        Refused("a line without a colon", .noColon, "HTTP/1.1 200 OK\r\nabc\r\n\r\n"),
        Refused("no name", .invalidName, "HTTP/1.1 200 OK\r\n: b\r\n\r\n"),
        Refused("a space in a name", .invalidName, "HTTP/1.1 200 OK\r\nX A: b\r\n\r\n"),
        Refused("a fold at first", .foldWithoutField, "HTTP/1.1 200 OK\r\n X: b\r\n\r\n"),
        Refused("NUL in a value", .controlCharacter, "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n"),
        Refused("CR in a value", .controlCharacter, "HTTP/1.1 200 OK\r\nX: a\rY: b\r\n\r\n"),
        Refused(
            "two lengths that differ",
            .twoLengths,
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"
        ),
        Refused(
            "two lengths that differ in a field",
            .twoLengths,
            "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello"
        ),
        Refused("a sign", .invalidLength, "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello"),
        Refused("no length", .invalidLength, "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello"),
        Refused(
            "a length, a comma",
            .invalidLength,
            "HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n\r\n"
        ),
        Refused(
            "a length of 2^63",
            .invalidLength,
            "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n"
        ),
        Refused(
            "a length beside chunks",
            .lengthBesideCoding,
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        Refused(
            "another coding",
            .severalCodings,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"
        ),
        Refused(
            "chunks beside nothing",
            .severalCodings,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked,\r\n\r\n0\r\n\r\n"
        ),
        Refused(
            "chunks in another coding",
            .severalCodings,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n"
        ),
        Refused(
            "chunks in chunks",
            .severalCodings,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"
        ),
        Refused("no size", .invalidChunk, chunked + "\r\nhello"),
        Refused("a size that is no number", .invalidChunk, chunked + "zz\r\nhello"),
        Refused("a prefix", .invalidChunk, chunked + "0x5\r\nhello"),
        Refused("a space before a size", .invalidChunk, chunked + " 5\r\nhello"),
        Refused("a size of 2^63", .invalidChunk, chunked + "8000000000000000\r\nh"),
        Refused("a size of 2^64 + 5", .invalidChunk, chunked + "10000000000000005\r\nhello"),
        Refused("CR in an extension", .invalidChunk, chunked + "5;a\rb\r\nhello"),
        Refused("NUL in an extension", .invalidChunk, chunked + "5;a\0\r\nhello"),
        Refused(
            "an extension without end",
            .invalidChunk,
            chunked + "5;" + String(repeating: "a", count: 5000)
        ),
        Refused("a chunk that is longer", .chunkTooLong, chunked + "4\r\nhello\r\n0\r\n\r\n"),
        Refused("CR in trailers", .controlCharacter, chunked + "0\r\nA: b\rc\r\n\r\n"),
        Refused(
            "trailers without end",
            .trailersTooLong,
            chunked + "0\r\n" + String(repeating: "a: b\r\n", count: 11_000)
        ),
        Refused(
            "bytes behind the end",
            .unasked,
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more"
        ),
        Refused(
            "65 interim responses",
            .tooManyInterims,
            String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 65)
        ),
        Refused(
            "bytes behind a switch of protocols",
            .unasked,
            "HTTP/1.1 101 Switching Protocols\r\n\r\n\0"
        ),
        Refused(
            "a head without end",
            .headTooLong,
            "HTTP/1.1 200 OK\r\n" + String(repeating: "a: b\r\n", count: 50_000)
        ),
        Refused(
            "a line without end",
            .headTooLong,
            "HTTP/1.1 200 OK\r\na: " + String(repeating: "b", count: 300_000)
        ),
        Refused(
            "too many fields",
            .tooManyFields,
            "HTTP/1.1 200 OK\r\n" + String(repeating: "a: b\r\n", count: 2001) + "\r\n"
        ),
    ]

    @Test("is refused", arguments: refused)
    func refuses(row: Refused) {
        for size in [Int.max, 1000, 7] {
            let reading = ResponseReading(Array(row.bytes.utf8), pieces: size)
            #expect(reading.refusal == row.error.description)
        }
    }

    @Test(
        "is incomplete where the connection closes",
        arguments: [
            "", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
            chunked + "5\r\nhello\r\n", chunked + "5\r\nhello\r\n0\r\n",
            chunked + "5\r\nhello\r\n0\r\n\r",
            "HTTP/1.1 100 Continue\r\n\r\n",
        ]
    )
    func cut(bytes: String) {
        let reading = ResponseReading(Array(bytes.utf8))
        #expect(reading.refusal == nil)
        #expect(!reading.hasEnded)
    }

    @Test("Responses follow one another, and HEAD has no body")
    func several() throws {
        var parser = ResponseParser()
        #expect(try parser.next() == nil)
        for method in [HTTPRequest.Method.get, .head, .get] {
            parser.begin(method)
            let body = method == .head ? "" : "hello"
            parser.add(ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + body))
            guard case .head(let head)? = try parser.next() else {
                Issue.record("no head")
                return
            }
            #expect(head.framing == (method == .head ? .none : .length(5)))
            if case .body(let part)? = try parser.next() {
                #expect(part == ByteBuffer(string: "hello"))
            }
            if method == .get { #expect(try parser.next().isEnd) }
            #expect(try parser.next() == nil)
        }
    }
}

extension ResponseParser.Event? {
    fileprivate var isEnd: Bool { if case .end? = self { true } else { false } }
}
