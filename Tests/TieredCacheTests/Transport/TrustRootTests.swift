#if HTTPClient
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Certificates that are trusted beside those of the system.
@Suite("Transport: trust roots", .tags(.realTime), .timeLimit(.minutes(1)))
struct TrustRootTests {
    private static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBfzCCASWgAwIBAgIUdsjwXCwb/hQ4eUDnfD0Oy9wg66cwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJcm9vdC50ZXN0MCAXDTI2MTEyNTIxMzcyOFoYDzIxMjYxMTAx
        MjEzNzI4WjAUMRIwEAYDVQQDDAlyb290LnRlc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAAQf6HoT1VrdRRyxLz9w1A1r1QP8gnbb9B/Y7oHTmmQpfdPRvUYm8aq4
        PWH8Z40f0yYJUO4pl6QwXzpDIhM/VJhXo1MwUTAdBgNVHQ4EFgQUlUkRxoy/AOTT
        A2ZiRVY9OVthCwkwHwYDVR0jBBgwFoAUlUkRxoy/AOTTA2ZiRVY9OVthCwkwDwYD
        VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiAp3ZWhutE9ftUJ+l6+6IQW
        2Ye734zVIckzlcwNYDyZXQIhAPJ6uc6W6+530djBcGeEM3YnSQVna54y6Q1+uHxT
        s2Ug
        -----END CERTIFICATE-----

        """

    @Test("A file that could not be read is read again for the next request")
    func readAgain() async throws {
        let directory = try TieredCacheTesting.TemporaryDirectory()
        let peer = RawPeer { connection in
            connection.write("HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.waitForClose()
        }
        let transport = NIOTransport(additionalTrustRoots: [directory.appending("root.pem")])
        var request = TransportCase.request(peer.authority)
        request.head.scheme = "https"
        func expectFailure() async {
            let error = await #expect(throws: TransportError.self) {
                try await transport.send(request)
            }
            #expect(error?.kind == .tls, "\(String(describing: error))")
        }
        await expectFailure()
        #expect(peer.connections == 0)
        try directory.write(Array(Self.certificate.utf8), to: "root.pem")
        // The peer speaks no TLS, but is asked now.
        await expectFailure()
        #expect(peer.connections == 1)
        await transport.shutdown()
    }
}
#endif
