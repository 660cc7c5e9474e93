import HTTPCaching
import HTTPTypes
import Testing

@Suite("Invalidation", .timeLimit(.minutes(10)))
struct InvalidationTests {
    private func targets(
        _ method: String,
        _ status: Int,
        _ fields: HTTPFields = [:]
    ) throws -> [String] {
        Invalidation.targets(
            method: try #require(HTTPRequest.Method(method)),
            target: try TargetURI("http://u:p@a/x/y"),
            status: status,
            fields: fields
        ).map(\.string)
    }

    @Test("Unsafe methods that succeed", arguments: ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"])
    func unsafe(method: String) throws {
        for status in [200, 204, 206, 303] {
            #expect(try targets(method, status) == ["http://a/x/y"])
        }
        for status in [100, 400, 404, 500, 503] {
            #expect(try targets(method, status).isEmpty)
        }
    }

    @Test("Safe methods change nothing", arguments: ["GET", "HEAD", "OPTIONS", "TRACE", "QUERY"])
    func safe(method: String) throws {
        #expect(try targets(method, 200, [.location: "/z"]).isEmpty)
    }

    @Test("Location and Content-Location of the same origin")
    func locations() throws {
        #expect(
            try targets("POST", 201, [.location: "z", .contentLocation: "/w?q#f"])
                == ["http://a/x/y", "http://a/x/z", "http://a/w?q"]
        )
        #expect(try targets("POST", 201, [.location: "y"]) == ["http://a/x/y"])
        for other in ["http://b/z", "https://a/z", "http://a:81/z", "//b", "ftp://a/z", "http:"] {
            let fields: HTTPFields = [.location: other, .contentLocation: other]
            #expect(try targets("POST", 201, fields) == ["http://a/x/y"], "\(other)")
        }
    }
}
