import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct PlayerRouteTests {
    private let address = ProxyAddress(port: 8080, token: "t0ken")

    private func route(
        _ target: String,
        _ method: HTTPRequest.Method = .get,
        host: String? = "127.0.0.1:8080"
    ) -> PlayerRoute {
        PlayerRoute(method: method, target: target, host: host, address: address)
    }

    @Test(arguments: [
        ("https/example.com/a/b.mp4?q", "https://example.com/a/b.mp4?q"),
        ("http/example.com/", "http://example.com/"),
        ("http/example.com", "http://example.com/"),
        ("http/EXAMPLE.com:8080/A%2Fb//c?d?e/f", "http://example.com:8080/A%2Fb//c?d?e/f"),
        ("https/[::1]:444/x", "https://[::1]:444/x"),
        ("http/h/https/other/x", "http://h/https/other/x"),
        ("http/h/?", "http://h/?"),
    ])
    func urlFormKeepsPathAndQuery(path: String, url: String) throws {
        #expect(route("/t0ken/\(path)") == .media(try TargetURI(url)))
    }

    @Test func urlOfATargetLeadsBack() throws {
        let urls = [
            "https://example.com/a/b.mp4?q", "http://h:81/%20?a=b&c", "http://h/",
            "http://[::1]:81/%5B%20%5D?x=%5B1%5D", "http://h//a/..;b/c@d:e!$&'()*+,=",
        ]
        for url in urls {
            let target = try TargetURI(url)
            let proxied = address.url(of: target)
            let path = proxied.dropFirst("http://127.0.0.1:8080".count)
            #expect(route(String(path)) == .media(target))
            let strict = URL(string: proxied, encodingInvalidCharacters: false)
            #expect(strict?.absoluteString == proxied)
        }
    }

    @Test(arguments: ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080"])
    func ownHostsAreAccepted(host: String) {
        #expect(route("/t0ken/", host: host) == .statusPage)
    }

    @Test(arguments: [
        "127.0.0.1", "localhost", "127.0.0.1:80", "example.com:8080", "127.0.0.1:8080.",
        "[::1]:8080",
        "127.0.0.1:08080", "127.0.0.2:8080",
    ])
    func otherHostsAreMisdirected(host: String) {
        #expect(route("/t0ken/http/h/x", host: host) == .refused(.misdirected))
    }

    @Test func withoutHostIsABadRequest() {
        #expect(route("/t0ken/http/h/x", host: nil) == .refused(.badRequest))
        #expect(route("/t0ken/http/h/x", host: "") == .refused(.badRequest))
    }

    @Test(arguments: [
        "/", "/t0ke/http/h/x", "/t0ken2/http/h/x", "/T0KEN/http/h/x", "//t0ken/http/h/x",
        "/http/h/x", "/t0ke", "/%740ken/http/h/x", "/?t0ken/",
    ])
    func wrongTokenIsNotFound(target: String) {
        #expect(route(target) == .refused(.notFound))
    }

    @Test(arguments: [
        "http://127.0.0.1:8080/t0ken/http/h/x", "t0ken/http/h/x", "*", "h:80",
    ])
    func otherFormsOfTargetAreBadRequests(target: String) {
        #expect(route(target) == .refused(.badRequest))
    }

    @Test func connectIsRefused() {
        #expect(route("h:80", .connect) == .refused(.methodNotAllowed))
    }

    @Test(arguments: [
        "/t0ken/ftp/h/x", "/t0ken/file/x", "/t0ken/x", "/t0ken/HTTP/h/x", "/t0ken/httpx/h",
    ])
    func otherSchemesAreNotFound(target: String) {
        #expect(route(target) == .refused(.notFound))
    }

    @Test(arguments: [
        "/t0ken/http//x", "/t0ken/http/h:99999/x", "/t0ken/http/a b/x", "/t0ken/http/",
    ])
    func noAuthorityIsABadRequest(target: String) {
        #expect(route(target) == .refused(.badRequest))
    }

    @Test func pagesAndForms() {
        #expect(route("/t0ken") == .redirectToBase)
        #expect(route("/t0ken/?sort=size") == .statusPage)
        #expect(route("/t0ken/metrics") == .metrics)
        #expect(route("/t0ken/remove", .post) == .form(.remove))
        #expect(route("/t0ken/remove") == .refused(.methodNotAllowed))
        #expect(route("/t0ken/", .post) == .refused(.methodNotAllowed))
        #expect(route("/t0ken/http/h/x", .post) == .refused(.methodNotAllowed))
        #expect(route("/t0ken/http/h/x", .head) != .refused(.methodNotAllowed))
    }

    @Test func tokensAreRandomAndVisible() {
        let tokens = (0..<50).map { _ in ProxyAddress.randomToken() }
        #expect(Set(tokens).count == 50)
        #expect(tokens.allSatisfy { ProxyAddress.isToken($0) && $0.utf8.count == 32 })
        for text in ["", "a/b", "a b", "ä", "a?b", String(repeating: "a", count: 257)] {
            #expect(!ProxyAddress.isToken(text), "\(text)")
        }
    }
}
