#if HTTPClient
import HTTPTypes
import TestParts
import Testing

@testable import TieredCache

/// Many requests at once to a peer that ends, cuts and confuses connections.
@Suite("Transport: many exchanges", .tags(.realTime), .timeLimit(.minutes(10)))
struct TransportStressTests {
    /// What the peer does with a request.
    private enum Conduct: Int, CaseIterable {
        case length, chunks, close, reset, second, interims, silence, untilClose

        /// Whether the response is complete, unless the connection was lost before it.
        var isComplete: Bool { self != .reset && self != .silence }
    }

    /// The body that belongs to a target, and to no other.
    private static func body(_ target: String) -> String {
        String(repeating: target + ";", count: 40)
    }

    private static func serve(_ connection: RawPeer.Connection) {
        while let head = connection.readHead() {
            let target = String(head.split(separator: " ")[1])
            let conduct = Conduct(rawValue: Int(target.split(separator: "/")[0]) ?? 0) ?? .length
            let body = body(target)
            let plain = "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
            switch conduct {
            case .length:
                connection.write(plain + body)
            case .chunks:
                let size = String(body.utf8.count, radix: 16)
                connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                connection.write("\(size)\r\n\(body)\r\n0\r\n\r\n")
            case .close:
                connection.write(plain + body)
                return
            case .reset:
                connection.write(plain + body.prefix(body.count / 2))
                return connection.reset()
            case .second:
                // In one piece, so that it follows in the same read or right behind it.
                connection.write(plain + body + "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
            case .interims:
                connection.write("HTTP/1.1 103 Early Hints\r\n\r\n" + plain + body)
            case .silence:
                return
            case .untilClose:
                connection.write("HTTP/1.1 200 OK\r\n\r\n" + body)
                return
            }
        }
    }

    @Test("Each response is its own request's, whatever became of the connection before")
    func ownResponses() async throws {
        let peer = RawPeer(Self.serve)
        let complete = try await TransportCase.withTransport { transport in
            try await withThrowingTaskGroup { group in
                for lane in 0..<16 {
                    group.addTask { try await Self.ask(peer.authority, by: transport, lane: lane) }
                }
                return try await group.reduce(0, +)
            }
        }
        // Some of those that might are lost with connections that the peer closes at that moment.
        #expect(complete > 16 * 100 / 3)
    }

    /// Sends a hundred requests one after the other, and gives some of the bodies up.
    ///
    /// - Returns: how many bodies were complete.
    private static func ask(
        _ authority: String,
        by transport: NIOTransport,
        lane: Int
    ) async throws -> Int {
        var complete = 0
        for number in 0..<100 {
            let conduct = Conduct.allCases[(number * 7 + lane * 3) % Conduct.allCases.count]
            let target = "/\(conduct.rawValue)/\(lane)/\(number)"
            do throws(TransportError) {
                let request = TransportCase.request(authority, path: target)
                let response = try await transport.send(request)
                #expect(response.head.status == .ok)
                if number % 11 == 5 {
                    response.body.cancel()
                    continue
                }
                let bytes = try await TransportCase.collect(response.body)
                #expect(conduct.isComplete, "\(target) has ended as if it were whole")
                let isOwn = bytes == Array(body(target).utf8)
                #expect(isOwn, "\(target) got \(String(decoding: bytes.prefix(40), as: UTF8.self))")
                complete += 1
            } catch {
                #expect(error.kind == .closedEarly, "\(target): \(error)")
            }
        }
        return complete
    }
}
#endif
