#if HTTPClient
import HTTPTypes
import NIOSSL
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// What TLS adds: who is trusted, and where a response ends.
@Suite("Transport: TLS", .tags(.realTime), .timeLimit(.minutes(2)))
struct TransportTLSTests {
    /// Asks a peer, by a transport that trusts its root.
    private static func outcome(
        of peer: TLSPeer,
        named host: String = "localhost",
        requests: Int = 1
    ) async throws -> Result<[String], TransportError> {
        let directory = try TieredCacheTesting.TemporaryDirectory()
        try directory.write(Array(TLSCredentials.root.utf8), to: "root.pem")
        let transport = NIOTransport(additionalTrustRoots: [directory.appending("root.pem")])
        var request = TransportCase.request("\(host):\(peer.port)")
        request.head.scheme = "https"
        let result: Result<[String], TransportError>
        do throws(TransportError) {
            var bodies: [String] = []
            for _ in 0..<requests {
                let body = try await TransportCase.collect(transport.send(request).body)
                bodies.append(String(decoding: body, as: UTF8.self))
            }
            result = .success(bodies)
        } catch {
            result = .failure(error)
        }
        await transport.shutdown()
        return result
    }

    @Test(
        "Both versions of TLS, kept and closed connections, by name and by address",
        arguments: [TLSVersion.tlsv12, .tlsv13],
        [TLSPeer.Ending.none, .closeNotify]
    )
    func versions(version: TLSVersion, ending: TLSPeer.Ending) async throws {
        try await TLSPeer.with(.init(version: version, ending: ending)) { peer in
            for host in ["localhost", "127.0.0.1"] {
                let outcome = try await Self.outcome(of: peer, named: host, requests: 3)
                #expect(outcome == .success(["hello", "hello", "hello"]))
            }
        }
    }

    @Test(
        "A certificate that has expired, or is another one's, is not accepted",
        arguments: [TLSCredentials.expired, TLSCredentials.other],
        [TLSVersion.tlsv12, .tlsv13]
    )
    func refused(certificate: String, version: TLSVersion) async throws {
        try await TLSPeer.with(.init(certificate: certificate, version: version)) { peer in
            guard case .failure(let error) = try await Self.outcome(of: peer) else {
                Issue.record("the certificate was accepted")
                return
            }
            #expect(error.kind == .tls, "\(error)")
        }
    }

    @Test("A certificate for a name is none for the address")
    func address() async throws {
        try await TLSPeer.with(.init(certificate: TLSCredentials.expired)) { peer in
            let outcome = try await Self.outcome(of: peer, named: "127.0.0.1")
            guard case .failure(let error) = outcome else {
                Issue.record("the certificate was accepted")
                return
            }
            #expect(error.kind == .tls, "\(error)")
        }
    }

    @Test(
        "A body that ends with the connection is whole only where TLS has ended as well",
        arguments: [TLSVersion.tlsv12, .tlsv13],
        [TLSPeer.Ending.closeNotify, .truncation]
    )
    func closeNotify(version: TLSVersion, ending: TLSPeer.Ending) async throws {
        var behaviour = TLSPeer.Behaviour(version: version, ending: ending)
        behaviour.answer = "HTTP/1.1 200 OK\r\n\r\nhello"
        try await TLSPeer.with(behaviour) { peer in
            switch try await Self.outcome(of: peer) {
            case .success(let bodies):
                #expect(ending == .closeNotify && bodies == ["hello"])
            case .failure(let error):
                #expect(ending == .truncation && error.kind == .closedEarly, "\(error)")
            }
        }
    }

    @Test("A body that says its length needs no end of TLS", arguments: TLSPeer.Ending.allCases)
    func length(ending: TLSPeer.Ending) async throws {
        try await TLSPeer.with(.init(ending: ending)) { peer in
            let outcome = try await Self.outcome(of: peer)
            #expect(outcome == .success(["hello"]))
        }
    }
}
#endif
