#if HTTPClient
import HTTPTypes
import Synchronization
import TestParts
import Testing

@testable import TieredCache

/// Peers that end a connection at each byte of what goes over it.
@Suite("Transport: ends at every byte", .tags(.realTime), .timeLimit(.minutes(10)))
struct TransportPositionTests {
    enum Ending: CaseIterable {
        case close, reset
    }

    struct Example: CustomTestStringConvertible {
        let head: String
        /// The body as it goes over the connection.
        let framed: String
        var endsWithConnection = false

        var testDescription: String { head }

        /// What a reader has of the body after so many bytes of the response.
        func body(after count: Int) -> String {
            let sent = framed.utf8.prefix(max(0, count - head.utf8.count))
            // In chunks, sizes and ends of lines are no part of it.
            let isLetter = { (byte: UInt8) in byte >= UInt8(ascii: "a") }
            return String(decoding: sent.filter(isLetter), as: UTF8.self)
        }

        /// Whether these bytes are the whole response.
        func isComplete(after count: Int, _ ending: Ending) -> Bool {
            guard endsWithConnection else { return count == (head + framed).utf8.count }
            return count >= head.utf8.count && ending == .close
        }
    }

    private static let examples = [
        Example(head: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", framed: "abcde"),
        Example(
            head: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            framed: "3\r\nabc\r\n2\r\nde\r\n0\r\nA: B\r\n\r\n"
        ),
        Example(head: "HTTP/1.1 200 OK\r\n\r\n", framed: "abcde", endsWithConnection: true),
        Example(head: "HTTP/1.1 103\r\n\r\nHTTP/1.1 204\r\nA: b\r\n\r\n", framed: ""),
    ]

    @Test(
        "A response is complete at its end alone, on a new connection and on a kept one",
        arguments: examples,
        Ending.allCases
    )
    func responses(response: Example, ending: Ending) async throws {
        let bytes = Array((response.head + response.framed).utf8)
        let peer = RawPeer { connection in
            while let request = connection.readHead() {
                // The path says after how many bytes the connection ends; `/keep` keeps it.
                let path = request.split(separator: " ")[1].dropFirst()
                guard let count = Int(path) else {
                    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    continue
                }
                connection.write(Array(bytes[..<count]))
                guard ending == .reset else { return }
                connection.waitUntilTaken()
                return connection.reset()
            }
        }
        for isKept in [false, true] {
            for count in 0...bytes.count {
                try await TransportCase.withTransport { transport in
                    if isKept {
                        let request = TransportCase.request(peer.authority, path: "/keep")
                        _ = try await TransportCase.collect(transport.send(request).body)
                    }
                    let outcome = await Self.outcome(
                        TransportCase.request(peer.authority, path: "/\(count)"),
                        on: transport
                    )
                    #expect(
                        String(decoding: outcome.body, as: UTF8.self) == response.body(after: count)
                    )
                    #expect(
                        outcome.error
                            == (response.isComplete(after: count, ending) ? nil : .closedEarly)
                    )
                }
            }
        }
        // Where a kept connection ends without a byte, the request is sent once more.
        #expect(peer.connections == 2 * (bytes.count + 1) + 1)
    }

    @Test(
        "A request that is not read to its end fails; of a kept connection, after a second try",
        arguments: [HTTPRequest.Method.get, .post],
        Ending.allCases
    )
    func requests(method: HTTPRequest.Method, ending: Ending) async throws {
        let content = method == .post ? Array("content".utf8) : []
        let length = "GET /keep HTTP/1.1\r\nHost: 127.0.0.1:12345\r\n\r\n".utf8.count
        for count in 0..<length {
            let keepsNext = Mutex(method == .get)
            let peer = RawPeer { connection in
                let keeps = keepsNext.withLock { keepsNext in
                    defer { keepsNext = false }
                    return keepsNext
                }
                if keeps {
                    guard connection.readHead() != nil else { return }
                    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                }
                // At least a byte: before it a kept connection may be closed without harm.
                _ = connection.read(count: max(1, count))
                if ending == .reset { connection.reset() }
            }
            try await TransportCase.withTransport { transport in
                if method == .get {
                    let request = TransportCase.request(peer.authority, path: "/keep")
                    _ = try await TransportCase.collect(transport.send(request).body)
                }
                let request = TransportCase.request(
                    peer.authority,
                    path: "/keep",
                    method: method,
                    body: content
                )
                #expect(await Self.outcome(request, on: transport).error == .closedEarly)
            }
            #expect(peer.connections == (method == .get ? 2 : 1))
        }
    }

    /// What comes of the body, and how it ends.
    private static func outcome(
        _ request: TransportRequest,
        on transport: NIOTransport
    ) async -> (body: [UInt8], error: TransportError.Kind?) {
        var bytes: [UInt8] = []
        do throws(TransportError) {
            let body = try await transport.send(request).body
            while let chunk = try await body.next() {
                chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            }
            return (bytes, nil)
        } catch {
            return (bytes, error.kind)
        }
    }
}
#endif
