#if HTTPClient
import Glibc
import HTTPTransport
import HTTPTypes
import NIOCore
import Synchronization
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Connections, and how exchanges end.
@Suite("Transport on SwiftNIO", .tags(.realTime), .timeLimit(.minutes(10)))
struct NIOTransportTests {
    @Test("A refused connection fails as connect")
    func refused() async throws {
        // Bound for as long as the test runs, so that no other server gets the port.
        let closed = try RawListener(backlog: nil)
        try await TransportCase.withTransport { transport in
            for host in ["127.0.0.1", "localhost"] {
                let error = await #expect(throws: TransportError.self) {
                    try await transport.send(TransportCase.request("\(host):\(closed.port)"))
                }
                #expect(error?.kind == .connect, "\(String(describing: error))")
            }
        }
        withExtendedLifetime(closed) {}
    }

    @Test("A name that does not resolve fails as nameResolution")
    func unresolvable() async throws {
        try await TransportCase.withTransport { transport in
            let error = await #expect(throws: TransportError.self) {
                try await transport.send(TransportCase.request("does-not-exist.invalid"))
            }
            #expect(error?.kind == .nameResolution, "\(String(describing: error))")
        }
    }

    @Test("What must not be sent twice does not go over a connection that was idle")
    func unsafeRequestsGetFreshConnections() async throws {
        let connections = Mutex(0)
        let peer = RawPeer { connection in
            connections.withLock { $0 += 1 }
            // As an origin that has just lost its patience: closed after the first response.
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        try await TransportCase.withTransport { transport in
            let get = try await transport.send(TransportCase.request(peer.authority))
            #expect(
                try await firstDifference(TransportCase.collect(get.body), Array("ok".utf8)) == nil
            )
            let post = try await transport.send(
                TransportCase.request(peer.authority, method: .post, body: [])
            )
            #expect(
                try await firstDifference(TransportCase.collect(post.body), Array("ok".utf8)) == nil
            )
            #expect(connections.withLock { $0 } == 2)
        }
    }

    @Test("Connections are kept alive")
    func keepAlive() async throws {
        let peer = RawPeer { connection in
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        try await TransportCase.withTransport { transport in
            for _ in 0..<5 {
                let response = try await transport.send(TransportCase.request(peer.authority))
                #expect(
                    try await firstDifference(
                        TransportCase.collect(response.body),
                        Array("ok".utf8)
                    ) == nil
                )
            }
            #expect(peer.connections == 1)
        }
    }

    @Test("Of the connections to ever more hosts a bounded number waits for another request")
    func manyHosts() async throws {
        let open = Counter()
        let peer = RawPeer { connection in
            open.add(1)
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
            open.add(-1)
        }
        let lookups = HostLookups { host in
            .success([SocketAddress(sockaddr_in(loopback: host.port), host: host.name)])
        }
        let transport = NIOTransport(lookups: lookups)
        let hosts = HTTPConnections.capacity * 2
        func send(to number: Int) async throws {
            let request = TransportCase.request("host\(number).test:\(peer.port)")
            let response = try await transport.send(request)
            #expect(try await TransportCase.collect(response.body) == Array("ok".utf8))
        }
        for number in 0..<hosts { try await send(to: number) }
        while open.value > HTTPConnections.capacity { await Task.yield() }
        #expect(peer.connections == hosts)
        // The last one is still there.
        try await send(to: hosts - 1)
        #expect(peer.connections == hosts)
        await transport.shutdown()
    }

    @Test("What is not pulled stays with the peer")
    func backPressure() async throws {
        let total = 64 << 20
        let signal = AsyncStream<Void>.makeStream()
        let piece = [UInt8](repeating: 7, count: 64 << 10)
        let counter = Counter()
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
            while counter.value < total, connection.write(piece) {
                counter.add(piece.count)
                if counter.value == 1 << 20 { signal.continuation.yield() }
            }
        }
        try await TransportCase.withTransport { transport in
            let response = try await transport.send(TransportCase.request(peer.authority))
            // Nothing is pulled: the peer runs ahead until the buffers between us are full.
            for await _ in signal.stream { break }
            var received = 0
            var worstLead = 0
            while let chunk = try await response.body.next() {
                received += chunk.count
                worstLead = max(worstLead, counter.value - received)
            }
            #expect(received == total)
            // The kernel's buffers on loopback hold some MiB on either side; ours hold < 1 MiB.
            #expect(worstLead < 24 << 20)
        }
    }

    @Test("Cancelling the body while a pull waits ends it and closes the connection")
    func cancelBody() async throws {
        let closed = AsyncStream<Void>.makeStream()
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            connection.waitForClose()
            closed.continuation.yield()
        }
        try await TransportCase.withTransport { transport in
            let body = try await transport.send(TransportCase.request(peer.authority)).body
            #expect(try await body.next()?.count == 5)
            let next = Task { try await body.next()?.count }
            body.cancel()
            body.cancel()
            let error = await #expect(throws: TransportError.self) { try await next.value }
            #expect(error?.kind == .cancelled)
            for await _ in closed.stream { break }
        }
    }

    @Test("Dropping the body closes the connection")
    func dropBody() async throws {
        let closed = AsyncStream<Void>.makeStream()
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            connection.waitForClose()
            closed.continuation.yield()
        }
        try await TransportCase.withTransport { transport in
            _ = try await transport.send(TransportCase.request(peer.authority))
            for await _ in closed.stream { break }
        }
    }

    @Test("Cancelling the task before the head, and before the pull, throws cancelled")
    func cancelTask() async throws {
        let arrived = AsyncStream<Void>.makeStream()
        let closed = AsyncStream<Void>.makeStream()
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            arrived.continuation.yield()
            connection.waitForClose()
            closed.continuation.yield()
        }
        try await TransportCase.withTransport { transport in
            let task = Task { try await transport.send(TransportCase.request(peer.authority)).head }
            for await _ in arrived.stream { break }
            task.cancel()
            let error = await #expect(throws: TransportError.self) { try await task.value }
            #expect(error?.kind == .cancelled)
            for await _ in closed.stream { break }
        }
    }

    @Test("A task cancelled from the start makes no request")
    func cancelledFromStart() async throws {
        let closed = try RawListener(backlog: nil)
        try await TransportCase.withTransport { transport in
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await transport.send(
                    TransportCase.request("127.0.0.1:\(closed.port)")
                )
                .head
            }
            let error = await #expect(throws: TransportError.self) { try await task.value }
            #expect(error?.kind == .cancelled)
        }
        withExtendedLifetime(closed) {}
    }

    @Test("After shutdown nothing is sent, and exchanges under way fail")
    func shutdown() async throws {
        let arrived = AsyncStream<Void>.makeStream()
        let peer = RawPeer { connection in
            guard connection.readHead() != nil else { return }
            arrived.continuation.yield()
            connection.waitForClose()
        }
        let transport = NIOTransport()
        let task = Task { try await transport.send(TransportCase.request(peer.authority)).head }
        for await _ in arrived.stream { break }
        await transport.shutdown()
        let first = await #expect(throws: TransportError.self) { try await task.value }
        #expect(first?.kind == .shutDown)
        let second = await #expect(throws: TransportError.self) {
            try await transport.send(TransportCase.request(peer.authority))
        }
        #expect(second?.kind == .shutDown)
    }

    @Test("A trust root that cannot be read fails as tls")
    func missingTrustRoot() async throws {
        let peer = RawPeer { $0.waitForClose() }
        let transport = NIOTransport(additionalTrustRoots: ["/nonexistent/ca.pem"])
        var request = TransportCase.request(peer.authority)
        request.head.scheme = "https"
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(request)
        }
        #expect(error?.kind == .tls, "\(String(describing: error))")
        await transport.shutdown()
    }

    @Test("A peer that does not speak TLS fails as tls")
    func notTLS() async throws {
        let peer = RawPeer { connection in
            connection.write("HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.waitForClose()
        }
        try await TransportCase.withTransport { transport in
            var request = TransportCase.request(peer.authority)
            request.head.scheme = "https"
            let error = await #expect(throws: TransportError.self) {
                try await transport.send(request)
            }
            #expect(error?.kind == .tls, "\(String(describing: error))")
        }
    }
}

extension sockaddr_in {
    fileprivate init(loopback port: Int) {
        self.init()
        sin_family = sa_family_t(AF_INET)
        sin_port = UInt16(port).bigEndian
        sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    }
}

/// A count that two threads share.
private final class Counter: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .sequentiallyConsistent) }

    func add(_ step: Int) { count.add(step, ordering: .sequentiallyConsistent) }
}
#endif
