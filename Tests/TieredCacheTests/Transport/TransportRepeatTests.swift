#if HTTPClient
import Dispatch
import HTTPTypes
import Synchronization
import TestParts
import Testing

@testable import TieredCache

/// Kept connections that the peer ends instead of its response.
@Suite("Transport: a second try", .tags(.realTime), .timeLimit(.minutes(10)))
struct TransportRepeatTests {
    enum Ending: CaseIterable {
        case close, reset
    }

    /// A peer that ends its connections at the first requests, but those for `/keep`.
    private final class MortalPeer: Sendable {
        private let lines: Lines
        private let peer: RawPeer

        /// - Parameters:
        ///   - ending: how a connection ends.
        ///   - deaths: how many requests end theirs; further ones are answered.
        ///   - bytes: what is sent before the end.
        init(_ ending: Ending, deaths: Int, sending bytes: String = "") {
            let lines = Lines()
            self.lines = lines
            peer = RawPeer { connection in
                while let head = connection.readHead() {
                    guard !head.contains(" /keep "), lines.add(head) <= deaths else {
                        connection.write(TransportRepeatTests.answer)
                        continue
                    }
                    connection.write(bytes)
                    guard ending == .reset else { return }
                    connection.waitUntilTaken()
                    return connection.reset()
                }
            }
        }

        /// The requests that were read, but those for `/keep`, without their fields.
        var requests: [String] { lines.all }
        var connections: Int { peer.connections }

        func request(
            _ method: HTTPRequest.Method,
            path: String = "/",
            body: [UInt8] = []
        ) -> TransportRequest {
            TransportCase.request(peer.authority, path: path, method: method, body: body)
        }

        /// Makes a connection that is kept, unless there is one.
        func keepConnection(of transport: NIOTransport) async throws {
            let failure = await transport.failure(of: request(.get, path: "/keep"))
            try #require(failure == nil)
        }
    }

    /// The lines that requests begin with.
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])

        var all: [String] { lines.withLock { $0 } }

        /// - Returns: how many there are with it.
        func add(_ head: String) -> Int {
            let line = String(head.prefix { $0 != "\r\n" })
            return lines.withLock { lines in
                lines.append(line)
                return lines.count
            }
        }
    }

    private static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    @Test(
        "GET and HEAD are sent once more where a kept connection ends before a byte",
        arguments: [HTTPRequest.Method.get, .head],
        Ending.allCases
    )
    func once(method: HTTPRequest.Method, ending: Ending) async throws {
        let peer = MortalPeer(ending, deaths: 1)
        try await TransportCase.withTransport { transport in
            try await peer.keepConnection(of: transport)
            let failure = await transport.failure(of: peer.request(method))
            #expect(failure == nil)
            // The fresh connection is kept like any other.
            try await peer.keepConnection(of: transport)
        }
        let line = "\(method.rawValue) / HTTP/1.1"
        #expect(peer.requests == [line, line])
        #expect(peer.connections == 2)
    }

    @Test("There is no third try", arguments: [HTTPRequest.Method.get, .head], Ending.allCases)
    func twice(method: HTTPRequest.Method, ending: Ending) async throws {
        let peer = MortalPeer(ending, deaths: 2)
        try await TransportCase.withTransport { transport in
            try await peer.keepConnection(of: transport)
            let failure = await transport.failure(of: peer.request(method))
            #expect(failure == .closedEarly)
        }
        let line = "\(method.rawValue) / HTTP/1.1"
        #expect(peer.requests == [line, line])
        #expect(peer.connections == 2)
    }

    @Test(
        "What may have done something, or has content, is sent once",
        arguments: [HTTPRequest.Method.get, .post, .put, .delete, .patch],
        Ending.allCases
    )
    func alone(method: HTTPRequest.Method, ending: Ending) async throws {
        let peer = MortalPeer(ending, deaths: 1)
        try await TransportCase.withTransport { transport in
            try await peer.keepConnection(of: transport)
            let content = method == .get ? Array("content".utf8) : []
            let request = peer.request(method, body: content)
            let failure = await transport.failure(of: request)
            #expect(failure == .closedEarly)
        }
        #expect(peer.requests == ["\(method.rawValue) / HTTP/1.1"])
        #expect(peer.connections == 2)
    }

    @Test("A connection that was never idle gives no second try", arguments: Ending.allCases)
    func fresh(ending: Ending) async throws {
        let peer = MortalPeer(ending, deaths: 1)
        try await TransportCase.withTransport { transport in
            let failure = await transport.failure(of: peer.request(.get))
            #expect(failure == .closedEarly)
        }
        #expect(peer.requests == ["GET / HTTP/1.1"])
        #expect(peer.connections == 1)
    }

    @Test(
        "A byte of a response is the end of the exchange",
        arguments: [
            "H", "HTTP/1.1 102 Processing\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        ],
        Ending.allCases
    )
    func begun(bytes: String, ending: Ending) async throws {
        let peer = MortalPeer(ending, deaths: 1, sending: bytes)
        try await TransportCase.withTransport { transport in
            try await peer.keepConnection(of: transport)
            let failure = await transport.failure(of: peer.request(.get))
            #expect(failure == .closedEarly)
        }
        #expect(peer.requests == ["GET / HTTP/1.1"])
        #expect(peer.connections == 1)
    }

    @Test(
        "A connection that its own side closes gives no second try",
        arguments: [TransportError.Kind.cancelled, .shutDown]
    )
    func ended(kind: TransportError.Kind) async throws {
        let arrived = AsyncStream<Void>.makeStream()
        let peer = RawPeer { connection in
            while let head = connection.readHead() {
                if head.contains(" /keep ") {
                    connection.write(Self.answer)
                } else {
                    arrived.continuation.yield()
                }
            }
        }
        try await TransportCase.withTransport { transport in
            let first = TransportCase.request(peer.authority, path: "/keep")
            let none = await transport.failure(of: first)
            #expect(none == nil)
            let request = TransportCase.request(peer.authority)
            let task = Task { await transport.failure(of: request) }
            for await _ in arrived.stream { break }
            if kind == .cancelled { task.cancel() } else { await transport.shutdown() }
            let failure = await task.value
            #expect(failure == kind)
        }
        #expect(peer.connections == 1)
    }

    @Test("The second try takes none of the other kept connections")
    func manyKept() async throws {
        let arrived = AsyncStream<Void>.makeStream()
        let mayAnswer = DispatchSemaphore(value: 0)
        let peer = RawPeer { connection in
            var isKept = false
            while let head = connection.readHead() {
                let keeps = head.contains(" /keep ")
                guard keeps || !isKept else { return }
                if keeps {
                    arrived.continuation.yield()
                    mayAnswer.wait()
                }
                connection.write(Self.answer)
                isKept = true
            }
        }
        try await TransportCase.withTransport { transport in
            let kept = (0..<3).map { _ in
                let request = TransportCase.request(peer.authority, path: "/keep")
                return Task { await transport.failure(of: request) }
            }
            var missing = kept.count
            for await _ in arrived.stream {
                missing -= 1
                if missing == 0 { break }
            }
            for _ in kept { mayAnswer.signal() }
            for task in kept {
                let failure = await task.value
                #expect(failure == nil)
            }
            let failure = await transport.failure(of: TransportCase.request(peer.authority))
            #expect(failure == nil)
            #expect(peer.connections == 4)
        }
    }

    @Test(
        "No request is lost to an origin that ends each connection behind its answer, unsaid",
        arguments: Ending.allCases
    )
    func unsaid(ending: Ending) async throws {
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            connection.write(Self.answer)
            guard ending == .reset else { return }
            connection.waitUntilTaken()
            connection.reset()
        }
        try await TransportCase.withTransport { transport in
            for number in 0..<200 {
                let request = TransportCase.request(peer.authority)
                let failure = await transport.failure(of: request)
                #expect(failure == nil, "\(number)")
            }
        }
        #expect(peer.connections == 200)
    }
}

extension NIOTransport {
    /// How a request fails; nil if its response is complete.
    fileprivate func failure(of request: TransportRequest) async -> TransportError.Kind? {
        do throws(TransportError) {
            _ = try await TransportCase.collect(send(request).body)
            return nil
        } catch {
            return error.kind
        }
    }
}
#endif
