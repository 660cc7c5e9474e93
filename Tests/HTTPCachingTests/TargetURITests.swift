import HTTPCaching
import Testing

@Suite("TargetURI", .timeLimit(.minutes(10)))
struct TargetURITests {
    @Test(
        "What is equivalent becomes equal, everything else stays",
        arguments: [
            ("http://a", "http://a/"), ("HTTP://ExAmple.COM:80", "http://example.com/"),
            ("https://a:443/x", "https://a/x"), ("https://a:80/x", "https://a:80/x"),
            ("http://a:/x", "http://a/x"), ("http://a:0080/x", "http://a/x"),
            ("http://a?q", "http://a/?q"), ("http://a/?", "http://a/?"),
            ("http://a/#f", "http://a/"),
            ("http://a/x#f?q", "http://a/x"), ("http://a#f", "http://a/"),
            ("http://a/%2F%2f%zz%", "http://a/%2F%2f%zz%"), ("http://a/b/../c", "http://a/b/../c"),
            ("http://a/x y?p q", "http://a/x%20y?p%20q"), ("http://a/ä", "http://a/%C3%A4"),
            ("http://a/?ä=日", "http://a/?%C3%A4=%E6%97%A5"), ("http://a/\\b", "http://a/%5Cb"),
            ("http://a//b//", "http://a//b//"), ("http://a/b?c?d", "http://a/b?c?d"),
            ("http://[::1]/x", "http://[::1]/x"),
            ("http://[FE80::1]:8080", "http://[fe80::1]:8080/"),
            ("http://[::ffff:1.2.3.4]:80/", "http://[::ffff:1.2.3.4]/"),
            ("http://u:p@a/x", "http://a/x"), ("http://u@v@a/x", "http://a/x"),
            ("http://127.0.0.1:65535/", "http://127.0.0.1:65535/"),
            ("http://a_b.example./", "http://a_b.example./"), ("http://a/@b:c", "http://a/@b:c"),
        ]
    )
    func valid(text: String, expected: String) throws {
        let uri = try TargetURI(text)
        #expect(uri.string == expected)
        #expect(try TargetURI(uri.string).string == expected)
        #expect(!uri.description.contains("u:p"))
    }

    @Test(
        "What is refused",
        arguments: [
            "", "a", "/x", "//a/x", "http", "http:", "http:/", "http:/a", "http://", "http:///x",
            "http://?q", "http://:80/", "http://u@/", "http://a:0/", "http://a:65536/",
            "http://a:b/", "http://a:-1/", "http://a:99999999999999999999/", "http://a:80:81/",
            "http://[::1", "http://[]/", "http://[x]/", "http://[1.2.3.4]/", "http://[::1]x/",
            "http://a[::1]/", "http://[::1%25eth0]/", "http://a b/", "http://ä.example/",
            "http://a%2eb/", "http://evil.example\\@a/", "http://a\\b/", "http://a/\u{0}",
            "http://a/\r\nX: y", "http://a/\u{7F}", "ftp://a/", "file:///etc/passwd", "data:,x",
            "javascript:alert(1)", " http://a/", "http://*/",
        ]
    )
    func refused(text: String) {
        #expect(throws: TargetURIError.self) { try TargetURI(text) }
    }

    @Test("The parts of a request")
    func parts() throws {
        let uri = try TargetURI("https://me:pw@[::1]:8443/a/b.mp4?t=1")
        #expect(uri.authority == "[::1]:8443")
        #expect(uri.originForm == "/a/b.mp4?t=1")
        #expect(uri.origin.description == "https://[::1]:8443")
        #expect(uri.userinfo == "me:pw")
        #expect(uri.withoutUserinfo.userinfo == nil)
        #expect(try TargetURI("http://a/x") != TargetURI("http://a/x?"))
    }

    @Test("Hostile texts never trap; what is accepted is accepted again")
    func fuzz() {
        var random = SeededGenerator(seed: 6)
        let pieces = [
            "http", "https", ":", "//", "/", "?", "#", "@", "[", "]", "::1", "a", "é", "80", "\\",
            "..", "%2F", " ", "http://a",
        ]
        for _ in 0..<40_000 {
            let text = random.text(of: pieces, count: 12)
            guard let uri = try? TargetURI(text) else { continue }
            #expect((try? TargetURI(uri.string))?.string == uri.string, "\(text)")
            #expect(uri.string.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "\(text)")
            _ = uri.basicAuthorization
            let reference = random.text(of: pieces, count: 8)
            guard let resolved = try? uri.resolving(reference: reference) else { continue }
            #expect((try? TargetURI(resolved.string))?.string == resolved.string, "\(reference)")
        }
    }
}
