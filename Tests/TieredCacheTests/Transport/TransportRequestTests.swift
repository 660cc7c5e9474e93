#if HTTPClient
import HTTPTypes
import Synchronization
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// What goes out.
@Suite("Transport: requests", .tags(.realTime), .timeLimit(.minutes(10)))
struct TransportRequestTests {
    @Test("The request goes out as given: target, authority, fields, nothing added")
    func requestAsGiven() async throws {
        let seen = Mutex("")
        let peer = RawPeer { connection in
            seen.withLock { $0 = connection.readHead() ?? "" }
            connection.write("HTTP/1.1 204 No Content\r\n\r\n")
        }
        try await TransportCase.withTransport { transport in
            let target = "/a[1]%2F%zz//..;b@c:%e4?x[]=%&y|"
            let response = try await transport.send(
                TransportCase.request(peer.authority, path: target, fields: [.range: "bytes=5-"])
            )
            #expect(response.head.status == .noContent)
            #expect(try await response.body.next() == nil)
            let lines = seen.withLock { $0 }.split(separator: "\r\n")
            #expect(lines.first == "GET \(target) HTTP/1.1")
            #expect(
                Set(lines.dropFirst().map { $0.lowercased() })
                    == ["range: bytes=5-", "host: \(peer.authority)"]
            )
        }
    }

    @Test("A Host field of the caller replaces the one made from the authority")
    func hostOfCaller() async throws {
        let seen = Mutex("")
        let peer = RawPeer { connection in
            seen.withLock { $0 = connection.readHead() ?? "" }
            connection.write("HTTP/1.1 204 No Content\r\n\r\n")
        }
        try await TransportCase.withTransport { transport in
            let name = try #require(HTTPField.Name("Host"))
            _ = try await transport.send(
                TransportCase.request(peer.authority, fields: [name: "example.com"])
            )
            #expect(seen.withLock { $0 }.lowercased().contains("host: example.com\r\n"))
            #expect(!seen.withLock { $0 }.contains("127.0.0.1"))
        }
    }

    @Test("A request body is sent with its length")
    func requestBody() async throws {
        let seen = Mutex("")
        let peer = RawPeer { connection in
            let head = connection.readHead() ?? ""
            let body = connection.read(count: 5)
            seen.withLock { $0 = head + body }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        try await TransportCase.withTransport { transport in
            let response = try await transport.send(
                TransportCase.request(peer.authority, method: .post, body: Array("a=b&c".utf8))
            )
            #expect(
                try await firstDifference(TransportCase.collect(response.body), Array("ok".utf8))
                    == nil
            )
            let text = seen.withLock { $0 }
            #expect(text.hasPrefix("POST / HTTP/1.1\r\n"))
            #expect(text.lowercased().contains("content-length: 5\r\n"))
            #expect(text.hasSuffix("\r\n\r\na=b&c"))
        }
    }

    @Test("A streamed request body goes out in chunks, or with the length it has")
    func streamedRequestBody() async throws {
        for length in [nil, 10] as [Int64?] {
            let seen = Mutex("")
            let peer = RawPeer { connection in
                let head = connection.readHead() ?? ""
                let isChunked = head.lowercased().contains("transfer-encoding: chunked\r\n")
                // "5\r\n", five bytes and "\r\n", twice, and then "0\r\n\r\n".
                let body = connection.read(count: isChunked ? 25 : 10)
                seen.withLock { $0 = head.lowercased() + body }
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
            try await TransportCase.withTransport { transport in
                let parts = Mutex(["first", "later"])
                var request = TransportCase.request(peer.authority, method: .post)
                request.upload = UploadBody(length: length) {
                    parts.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                        .map { BodyChunk(Array($0.utf8)) }
                }
                let response = try await transport.send(request)
                #expect(
                    try await firstDifference(
                        TransportCase.collect(response.body),
                        Array("ok".utf8)
                    ) == nil
                )
                let text = seen.withLock { $0 }
                #expect(text.contains("content-length: 10\r\n") == (length == 10))
                #expect(
                    text.hasSuffix(
                        length == nil ? "5\r\nfirst\r\n5\r\nlater\r\n0\r\n\r\n" : "firstlater"
                    )
                )
            }
        }
    }

    @Test(
        "A request that would break its framing is invalidRequest",
        arguments: [
            ("127.0.0.1:1", "/a b"), ("127.0.0.1:1", "/#f"),
            ("127.0.0.1:1", "x"), ("127.0.0.1:1", ""), ("127.0.0.1:1", "/\u{E4}"),
            ("user:pass@127.0.0.1:1", "/"), ("", "/"), ("a b", "/"), ("[::1", "/"), ("h/x", "/"),
            ("127.0.0.1:99999", "/"),
        ]
    )
    func invalidRequest(authority: String, path: String) async throws {
        try await TransportCase.withTransport { transport in
            let error = await #expect(throws: TransportError.self) {
                try await transport.send(TransportCase.request(authority, path: path))
            }
            #expect(error?.kind == .invalidRequest, "\(String(describing: error))")
        }
    }
}
#endif
