import HTTPCaching
import HTTPTypes
import Testing

@testable import TieredCache

@Suite(.timeLimit(.minutes(1)))
struct HostRulesTests {
    private func rules(_ lines: String...) throws -> HostRules {
        var rules = HostRules()
        for line in lines { try rules.add(line) }
        return rules
    }

    @Test(
        "A host stands for itself and those below it",
        arguments: [
            ("h.example", "http://h.example/", true),
            ("h.example", "https://user@a.b.h.example:8443/x?y", true),
            ("H.Example", "http://h.eXAMPLE/", true),
            ("h.example", "http://bh.example/", false),
            ("h.example", "http://h.example.org/", false),
            ("h.example", "http://example/", false),
            ("h.example", "http://x/h.example", false),
            ("h.example", "http://h.example@x/", false),
            (".h.example", "http://a.h.example/", true),
            ("h.example:81 b", "http://a.h.example:81/", true),
            ("h.example:81 b", "http://a.h.example/", false),
            ("*", "http://h/", true),
            ("*.example", "http://h.example/", true),
            ("127.0.0.1", "http://127.0.0.1:80/", true),
            ("0.0.1", "http://127.0.0.1/", true),
            ("[::1]", "http://[::1]:8080/", true),
            ("a, b\tc", "http://c/", true),
            (",a,", "http://a/", true),
            ("a b", "http://ab/", false),
        ]
    )
    func hosts(words: String, url: String, isExcluded: Bool) throws {
        let rules = try rules("exclude=\(words)")
        #expect(rules.excludes(try TargetURI(url)) == isExcluded)
        #expect(!rules.excluded.isEmpty)
        #expect(!HostRules().excludes(try TargetURI(url)))
    }

    @Test(
        "Parameters that do not tell the entry are no part of its name",
        arguments: [
            ("http://h/f?sign=1&part=2&expires=7", "http://h/f?part=2"),
            ("http://h/f?expires=8&part=2&sign=2#t", "http://h/f?part=2"),
            ("http://h:80/f?sign=1", "http://h/f"),
            ("http://h/f?sign", "http://h/f"),
            ("http://h/f?sign=a=b&x", "http://h/f?x"),
            ("http://h/f", "http://h/f"),
            ("http://h/f?", "http://h/f?"),
            ("http://h/f?a&&b", "http://h/f?a&&b"),
            ("http://h/f?signs=1&Sign=2&a=sign", "http://h/f?signs=1&Sign=2&a=sign"),
            ("http://user@a.h/f?sign=1&q", "http://a.h/f?q"),
        ]
    )
    func keys(url: String, key: String) throws {
        let all = [try rules("key=h sign expires"), try rules("key=* sign", "key=h expires,x1")]
        for rules in all { #expect(rules.key(for: try TargetURI(url)) == key) }
        #expect(try rules("key=other sign").key(for: try TargetURI(url)) == nil)
    }

    @Test("Fields of rules go before those of the same names, and several of one name are kept")
    func fields() throws {
        let rules = try rules(
            "header=h Referer:  http://x/ ",
            "header=* X-A: 1",
            "header=a.h\tX-A: 2",
            "header=h Empty:",
            "header=other X-B: 3"
        )
        var request = try CacheRequest("http://a.h/")
        request.fields = [.referer: "http://own/", .accept: "*/*"]
        rules.apply(to: &request)
        #expect(request.fields[.referer] == "http://x/")
        #expect(request.fields[.accept] == "*/*")
        #expect(request.fields[values: try #require(HTTPField.Name("X-A"))] == ["1", "2"])
        #expect(request.fields[try #require(HTTPField.Name("Empty"))] == "")
        #expect(request.fields.count == 5)
        var other = try CacheRequest("http://elsewhere/")
        rules.apply(to: &other)
        #expect(other.fields.map(\.value) == ["1"])
    }

    @Test("A line without a value removes the rules of its name")
    func removal() throws {
        var rules = try rules("exclude=a", "header=a X: 1", "key=a x")
        try rules.add("exclude=")
        #expect(!rules.excludes(try TargetURI("http://a/")))
        #expect(rules.key(for: try TargetURI("http://a/?x")) == "http://a/")
        try rules.add("key= ")
        #expect(rules.key(for: try TargetURI("http://a/?x")) == nil)
        #expect(rules != HostRules())
        try rules.add("header=")
        #expect(rules == HostRules())
    }

    @Test(
        "What is no rule is refused, and changes nothing",
        arguments: [
            "", "=", "exclude", "exclude a", "Exclude=a", "off=a", "header=a", "header=a X",
            "header=a : 1", "header=a X Y: 1", "header=a X: a\nY: b", "header=a X: a\u{0}",
            "header=a Range: bytes=0-", "header=a Host: b", "header=a Accept-Encoding: gzip",
            "key=a", "key=a ,,", "exclude=\u{301}", "exclude=b http://c/", "header=a: X: 1",
            "header=X:1", "key=a/b x",
        ]
    )
    func refusals(line: String) throws {
        var rules = try rules("exclude=a", "header=a X: 1", "key=a x")
        let before = rules
        #expect {
            try rules.add(line)
        } throws: { error in
            (error as? CacheError)?.code == .invalidArgument
        }
        #expect(rules == before)
    }

    @Test("A dot at the end and brackets of an address are no other host")
    func spellings() throws {
        var rules = HostRules()
        try rules.add("exclude=example.com ::1")
        for url in ["http://example.com./a", "http://a.example.com./", "http://[::1]/a"] {
            #expect(rules.excludes(try TargetURI(url)), "\(url)")
        }
    }

    @Test("A rule with a port, or with a dot in front, is for what it names alone")
    func ports() throws {
        let rules = try rules("header=.h:81 X-A: 1", "key=h:81 sign")
        for (url, isNamed) in [("http://a.h:81/?sign", true), ("http://h/?sign", false)] {
            var request = try CacheRequest(url)
            rules.apply(to: &request)
            #expect(request.fields.isEmpty != isNamed)
            #expect((rules.key(for: request.target) != nil) == isNamed)
        }
    }

    @Test("Rules that are applied again replace what they gave before")
    func again() throws {
        var request = try CacheRequest("http://h/")
        request.fields = [.accept: "*/*"]
        try rules("header=h X-A: 1", "header=h X-B: 2", "exclude=b").apply(to: &request)
        #expect(request.ruleFields.count == 2 && !request.excludedHosts.isEmpty)
        try rules("header=h X-B: 3").apply(to: &request)
        #expect(request.fields.map(\.value) == ["*/*", "3"])
        #expect(request.firstOriginFields.map(\.rawName) == ["X-B"])
        #expect(request.excludedHosts.isEmpty)
        HostRules().apply(to: &request)
        #expect(request.fields == [.accept: "*/*"] && request.firstOriginFields.isEmpty)
    }

    @Test("Fields of a rule are for the first origin alone")
    func firstOrigin() throws {
        var rules = HostRules()
        try rules.add("header=example.com X-Token: secret")
        var request = try CacheRequest("http://example.com/a")
        rules.apply(to: &request)
        #expect(request.firstOriginFields.map(\.rawName) == ["X-Token"])
    }
}
