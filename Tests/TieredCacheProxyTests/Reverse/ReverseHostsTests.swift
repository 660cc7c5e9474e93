import HTTPCaching
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheProxy

/// A request by a name that a page on the web could have made up is refused (DNS rebinding).
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ReverseHostsTests {
    @Test(arguments: [
        "127.0.0.1:8080", "127.0.0.1", "localhost", "LOCALHOST:80", "localhost.", "a.localhost:1",
        "[::1]:80", "[2001:db8::1]", "192.168.1.2:80", "127.1", "2130706433", "a", "origin:80",
        "media.site.net", "MEDIA.SITE.NET.:443", "other.site.net", "x.test", "a.example",
        "www.example.com", "b.invalid",
    ])
    func allowed(host: String) throws {
        let origin = try TargetURI("https://media.site.net/path")
        #expect(ReverseHosts(origin: origin, others: ["other.site.net"]).allows(host))
    }

    @Test(arguments: [
        "attacker.net", "127.0.0.1.attacker.net", "localhost.attacker.net:8080", "site.net",
        "a.media.site.net", "notexample.com", "example.com.attacker.net", "mylocalhost.net",
        "127.0.0.1x:80", "..net",
    ])
    func refused(host: String) throws {
        let origin = try TargetURI("https://media.site.net/path")
        #expect(!ReverseHosts(origin: origin, others: ["other.site.net"]).allows(host))
        #expect(ReverseHosts(origin: origin, others: ["*"]).allows(host))
        #expect(
            ReverseHosts(origin: origin, others: [host.lowercased()]).allows("\(host):80")
                == !host.contains(":")
        )
    }

    @Test func throughTheSocket() async throws {
        try await ReverseFixture.run { connection, _ in
            try connection.answer("ok", "Cache-Control: max-age=60")
            return true
        } _: { fixture in
            // What is stored is not for them either.
            for host in ["attacker.net", "localhost", "attacker.net", "127.0.0.1", "attacker.net"] {
                let (text, _) = try await fixture.exchange(
                    "GET /a HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n"
                )
                let answer = try RawResponse(head: text)
                #expect(answer.status == (host == "attacker.net" ? 421 : 200), "\(host)")
            }
            #expect(fixture.origin.requests.count == 1)
        }
    }

    @Test func widened() async throws {
        try await ReverseFixture.run {
            $0.settings.hosts = ["cache.site.net"]
        } origin: { connection, _ in
            try connection.answer("ok")
            return true
        } _: { fixture in
            let (text, _) = try await fixture.exchange(
                "GET /a HTTP/1.1\r\nHost: cache.site.net:80\r\nConnection: close\r\n\r\n"
            )
            #expect(text.hasPrefix("HTTP/1.1 200 "))
        }
    }
}
