import HTTPCaching
import HTTPTypes
import Testing

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct ReverseTargetTests {
    @Test(arguments: [
        ("http://h", "/a?b", "http://h/a?b"), ("http://h/", "/", "http://h/"),
        ("http://h/base", "/a", "http://h/base/a"), ("http://h/base/", "//a", "http://h/base//a"),
        ("https://h:444", "http://other:80/a?b", "https://h:444/a?b"),
        ("http://h", "/%2e%2E/a%2Fb", "http://h/%2e%2E/a%2Fb"),
    ])
    func targetsAreJoined(origin: String, requestTarget: String, url: String) throws {
        let target = try #require(try ReverseTarget(url: origin))
        #expect(target.target(for: requestTarget)?.string == url)
    }

    @Test func otherTargetsHaveNoPlace() throws {
        let target = try #require(try ReverseTarget(url: "http://h"))
        for text in ["*", "a", "h:80", "ftp://h/"] {
            #expect(target.target(for: text) == nil, "\(text)")
        }
        #expect(try ReverseTarget(url: "http://h/?q") == nil)
    }

    @Test func viaGoesToTheEnd() throws {
        let via = try #require(HTTPField.Name("Via"))
        #expect(Intermediary.addingVia([:])[via] == "1.1 tieredcache")
        #expect(
            Intermediary.addingVia([via: "1.0 a"], isHTTP10: true)[via] == "1.0 a, 1.0 tieredcache"
        )
    }

    @Test func maxForwardsIsCountedDown() throws {
        let name = try #require(HTTPField.Name("Max-Forwards"))
        var fields: HTTPFields = [name: "2"]
        #expect(!Intermediary.endsHere(method: .options, fields: &fields))
        #expect(fields[name] == "1")
        fields[name] = "0"
        #expect(Intermediary.endsHere(method: .options, fields: &fields))
        #expect(!Intermediary.endsHere(method: .get, fields: &fields))
        fields[name] = "x"
        #expect(!Intermediary.endsHere(method: .options, fields: &fields))
    }
}
