import HTTPCaching
import Testing

@Suite("TargetURI resolving", .timeLimit(.minutes(10)))
struct TargetURIResolvingTests {
    /// RFC 3986 §5.4, fragments dropped.
    @Test(
        "The examples of RFC 3986",
        arguments: [
            ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"), ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"), ("g#s", "http://a/b/c/g"),
            ("g?y#s", "http://a/b/c/g?y"), (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"),
            ("g;x?y#s", "http://a/b/c/g;x?y"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"),
            ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
            ("../../g", "http://a/g"), ("../../../g", "http://a/g"),
            ("../../../../g", "http://a/g"),
            ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."),
            (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
            ("g;x=1/../y", "http://a/b/c/y"), ("g?y/./x", "http://a/b/c/g?y/./x"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
        ]
    )
    func examples(reference: String, expected: String) throws {
        let base = try TargetURI("http://a/b/c/d;p?q")
        #expect(try base.resolving(reference: reference).string == expected)
    }

    @Test(
        "What origins send, and what attackers do",
        arguments: [
            ("https://other/x/../y", "https://other/y"), ("HTTPS://Other:443", "https://other/"),
            ("//other:8080/x", "https://other:8080/x"), ("?", "https://a/b/c?"),
            ("/\\evil.example/x", "https://a/%5Cevil.example/x"),
            ("\\\\evil.example", "https://a/b/%5C%5Cevil.example"),
            ("/%2e%2e/x", "https://a/%2e%2e/x"), ("x y/ä", "https://a/b/x%20y/%C3%A4"),
            ("/a//../b", "https://a/a/b"), ("/..//x", "https://a//x"), ("./x:y", "https://a/b/x:y"),
            ("/x?u=http://b/", "https://a/x?u=http://b/"), ("9:x", "https://a/b/9:x"),
        ]
    )
    func references(reference: String, expected: String) throws {
        let base = try TargetURI("https://a/b/c")
        #expect(try base.resolving(reference: reference).string == expected)
    }

    @Test(
        "What leads nowhere",
        arguments: [
            "ftp://a/", "mailto:x@y", "javascript:alert(1)", "file:///etc/passwd", "http:",
            "http:x",
            "///x", "//", "//:80", "//a:0/", "//u@\\b/", "/x\r\nSet-Cookie: y", "\u{0}",
        ]
    )
    func refused(reference: String) throws {
        let base = try TargetURI("https://a/b/c")
        #expect(throws: TargetURIError.self) { try base.resolving(reference: reference) }
    }

    @Test("Userinfo stays with its authority")
    func userinfo() throws {
        let base = try TargetURI("http://u:p@a/x?q")
        #expect(try base.resolving(reference: "/y").userinfo == "u:p")
        #expect(try base.resolving(reference: "").userinfo == "u:p")
        #expect(try base.resolving(reference: "//a/y").userinfo == nil)
        #expect(try base.resolving(reference: "http://v@a/y").userinfo == "v")
    }
}

@Suite("TargetURI Basic authorization", .timeLimit(.minutes(10)))
struct TargetURIBasicAuthorizationTests {
    @Test(
        "Worked values",
        arguments: [
            ("Aladdin:open%20sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ("test:123%C2%A3", "Basic dGVzdDoxMjPCow=="), ("u", "Basic dTo="), ("u:", "Basic dTo="),
            (":p", "Basic OnA="), ("u:a:b", "Basic dTphOmI="), ("%75:%7", "Basic dTolNw=="),
            ("ü:p", "Basic w7w6cA=="),
        ]
    )
    func values(userinfo: String, expected: String) throws {
        #expect(try TargetURI("http://\(userinfo)@a/").basicAuthorization == expected)
    }

    @Test("None without userinfo")
    func none() throws {
        #expect(try TargetURI("http://a/").basicAuthorization == nil)
        #expect(try TargetURI("http://@a/").basicAuthorization == nil)
    }
}
