import Foundation
import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheFoundation
import TieredCacheTesting

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A class with a cache that waits for an origin only briefly.
private final class ImpatientProtocol: TieredURLProtocol {
    static let own = Guarded<MediaCache?>(nil)
    override class var cache: MediaCache? { own.withLock { $0 } }
}

extension SessionFixture {
    /// The fields of the last request for a path.
    fileprivate func lastFields(for path: String) throws -> HTTPFields {
        try #require(origin.log.exchanges(for: path).last).fields
    }
}

extension URLSessionTests {
    @Suite(
        "URLSession with a cache: what Foundation's own tests say of requests and responses",
        .tags(.realTime),
        .timeLimit(.minutes(2))
    )
    struct FoundationRequestTests {
        // MARK: Redirects

        @Test(
            "the cache follows redirects of GET and HEAD, Foundation those of other methods",
            arguments: [301, 302, 303, 307, 308],
            ["GET", "HEAD", "POST", "PUT", "DELETE"]
        )
        func redirects(status: Int, method: String) async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/from", OriginScript(.redirect(to: "/to", status: status)))
                fixture.origin.serve("/to", .text("there"))
                let isCached = method == "GET" || method == "HEAD"
                let becomesGet = !isCached && status == 303 || method == "POST" && status < 303
                let last = becomesGet ? "GET" : method
                let (text, response) = try await fixture.load(fixture.request(method, "/from"))
                #expect(response.statusCode == 200)
                #expect(response.url?.path == "/to")
                #expect(text == (last == "HEAD" ? "" : "there"))
                #expect(response.cacheStatus.isEmpty == !isCached)
                #expect(fixture.origin.log.exchanges.map(\.method) == [method, last])
            }
        }

        @Test("no other status leads elsewhere", arguments: [300, 305, 306], ["GET", "HEAD"])
        func notFollowed(status: Int, method: String) async throws {
            try await SessionFixture.run { fixture in
                var behaviour = OriginBehaviour.status(status)
                behaviour.overrides[.location] = "/b"
                fixture.origin.serve("/a", OriginScript(behaviour))
                let (text, response) = try await fixture.load(fixture.request(method, "/a"))
                #expect(response.statusCode == status)
                #expect(text == (method == "HEAD" ? "" : "status \(status)\n"))
            }
        }

        @Test(
            "a redirect may be relative, and keeps its query as it is",
            arguments: [
                ("/b", "/b"), ("b", "/dir/b"), ("../b", "/b"), ("?x=1", "/dir/a?x=1"),
                ("/b?x=a%2Bb%20c", "/b?x=a%2Bb%20c"),
            ]
        )
        func relativeRedirects(location: String, target: String) async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/dir/a", OriginScript(.redirect(to: location)))
                fixture.origin.serve(target, .text("there"))
                let text = try await fixture.load(fixture.request("/dir/a")).text
                #expect(text == "there")
                #expect(fixture.origin.log.exchanges.last?.target == target)
            }
        }

        @Test("twenty redirects are followed, and one more is an error")
        func redirectLimit() async throws {
            try await SessionFixture.run { fixture in
                for number in 0..<21 {
                    fixture.origin.serve(
                        "/\(number)",
                        OriginScript(.redirect(to: "/\(number + 1)"))
                    )
                }
                fixture.origin.serve("/21", .text("there"))
                let text = try await fixture.load(fixture.request("/1")).text
                #expect(text == "there")
                let error = await #expect(throws: URLError.self) {
                    try await fixture.load(fixture.request("/0"))
                }
                #expect(error?.code == .httpTooManyRedirects)
                #expect(fixture.requests(for: "/21") == 1)
            }
        }

        @Test("a redirect to where nobody listens is that error")
        func redirectToNobody() async throws {
            let listener = try RawListener(backlog: nil)
            defer { listener.stop() }
            try await SessionFixture.run { fixture in
                let location = "http://127.0.0.1:\(listener.port)/"
                fixture.origin.serve("/a", OriginScript(.redirect(to: location)))
                let error = await #expect(throws: URLError.self) {
                    try await fixture.load(fixture.request("/a"))
                }
                #expect(error?.code == .cannotConnectToHost)
            }
        }

        @Test("a delegate decides on redirects past the cache, and is not asked about others")
        func redirectDelegate() async throws {
            let delegate = CallDelegate()
            try await SessionFixture.run(delegate: delegate) { fixture in
                fixture.origin.serve("/a", OriginScript(.redirect(to: "http://127.0.0.1/b")))
                let response = try await fixture.load(fixture.request("POST", "/a")).response
                #expect(response.statusCode == 302)
                #expect(delegate.redirects.map(\.url?.absoluteString) == ["http://127.0.0.1/b"])
                fixture.origin.serve("/a", OriginScript(.redirect(to: "/b")))
                fixture.origin.serve("/b", .text("there"))
                #expect(try await fixture.load(fixture.request("/a")).text == "there")
                #expect(delegate.redirects.count == 1)
            }
        }

        // MARK: Requests

        @Test(
            "a request with no content is answered, whatever its method and type",
            arguments: ["HEAD", "GET", "PUT", "POST", "DELETE"]
        )
        func emptyBodies(method: String) async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("a", cacheControl: "no-store"))
                let contents: [(Data?, String?)] = [
                    (nil, nil), (Data(), nil), (nil, "text/plain"), (Data(), "text/plain"),
                ]
                for (body, type) in contents {
                    var request = try fixture.request(method, "/a")
                    request.httpBody = body
                    request.setValue(type, forHTTPHeaderField: "Content-Type")
                    #expect(try await fixture.load(request).text == (method == "HEAD" ? "" : "a"))
                    #expect(try fixture.lastFields(for: "/a")[.contentType] == type)
                }
            }
        }

        @Test("content is sent past the cache, but none with GET")
        func bodies() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("a"))
                for method in ["POST", "PUT", "DELETE", "GET"] {
                    var request = try fixture.request(method, "/a")
                    request.httpBody = Data("x=1".utf8)
                    guard method == "GET" else {
                        #expect(try await fixture.load(request).text == "a")
                        let exchange = fixture.origin.log.exchanges.last
                        #expect(exchange?.body == Array("x=1".utf8))
                        continue
                    }
                    let error = await #expect(throws: URLError.self) {
                        try await fixture.load(request)
                    }
                    #expect(error?.code == .dataLengthExceedsMaximum)
                }
            }
        }

        @Test("the delegate of an upload is told what was sent")
        func upload() async throws {
            let delegate = CallDelegate()
            try await SessionFixture.run(delegate: delegate) { fixture in
                fixture.origin.serve("/a", .text("a"))
                let content = Data(count: 16 << 10)
                let put = try fixture.request("PUT", "/a")
                fixture.session.uploadTask(with: put, from: content).resume()
                _ = await delegate.calls(until: "end")
                #expect(delegate.bytesSent == Int64(content.count))
                #expect(fixture.origin.log.exchanges.last?.body == [UInt8](content))
            }
        }

        @Test("what a cache cannot answer is left to Foundation")
        func left() async throws {
            try await SessionFixture.run { fixture in
                var streamed = try fixture.request("/a")
                streamed.httpBodyStream = InputStream(data: Data("x".utf8))
                var upgraded = try fixture.request("/a")
                upgraded.setValue("websocket", forHTTPHeaderField: "Upgrade")
                var nowhere = try fixture.request("/a")
                nowhere.url = nil
                let unknown = URLRequest(url: try #require(URL(string: "foobar://a/")))
                var requests = [streamed, upgraded, nowhere, unknown]
                for text in ["ws://a/", "ftp://a/", "file:///a", "data:,text"] {
                    requests.append(URLRequest(url: try #require(URL(string: text))))
                }
                for request in requests { #expect(!TieredURLProtocol.canInit(with: request)) }
                let url = try #require(URL(string: "data:text/plain,text"))
                #expect(try await fixture.session.data(from: url).0 == Data("text".utf8))
                for request in [nowhere, unknown] {
                    let error = await #expect(throws: URLError.self) {
                        try await fixture.session.data(for: request)
                    }
                    #expect(error?.code == .unsupportedURL)
                }
            }
        }

        @Test("a URL that cannot be asked is a bad one, and an IPv6 address is none of these")
        func badURLs() async throws {
            try await SessionFixture.run { fixture in
                let codes: [(String, URLError.Code)] = [
                    ("http://127.0.0.1:999999/a", .badURL),
                    ("http://[::1]:1/a", .cannotConnectToHost),
                ]
                for (text, code) in codes {
                    let request = URLRequest(url: try #require(URL(string: text)))
                    let error = await #expect(throws: URLError.self) {
                        try await fixture.load(request)
                    }
                    #expect(error?.code == code, "\(text)")
                }
            }
        }

        @Test("fields of the session are sent past the cache, those of the request always")
        func additionalFields() async throws {
            try await SessionFixture.run { fixture in
                let session = fixture.otherSession {
                    $0.httpAdditionalHeaders = ["X-A": "session", "X-B": "session"]
                }
                fixture.origin.serve("/a", .text("a"))
                let first = try #require(HTTPField.Name("X-A"))
                let second = try #require(HTTPField.Name("X-B"))
                let sent: [(String, String?)] = [("POST", "session"), ("GET", nil)]
                for (method, value) in sent {
                    var request = try fixture.request(method, "/a")
                    request.setValue("request", forHTTPHeaderField: "x-b")
                    _ = try await session.data(for: request)
                    let fields = try fixture.lastFields(for: "/a")
                    #expect(fields[first] == value)
                    #expect(fields[second] == "request")
                }
                session.finishTasksAndInvalidate()
            }
        }

        @Test("silence of the origin is a timeout, by the cache's configuration alone")
        func timeouts() async throws {
            try await SessionFixture.run(answering: ImpatientProtocol.self) { fixture in
                let directory = try TemporaryDirectory("url-session")
                var settings = MediaCache.Configuration(path: directory.path)
                settings.retries = 1
                settings.timeout = .milliseconds(50)
                let cache = try MediaCache(settings)
                ImpatientProtocol.own.withLock { $0 = cache }
                let gate = fixture.serveLate("/a")
                let error = await #expect(throws: URLError.self) {
                    try await fixture.load(fixture.request("/a"))
                }
                #expect(error?.code == .timedOut)
                gate.open()
                // The cache of the fixture is a patient one.
                ImpatientProtocol.own.withLock { $0 = fixture.cache }
                var request = try fixture.request("/a")
                request.timeoutInterval = 0.001
                #expect(try await fixture.load(request).text == "late")
                ImpatientProtocol.own.withLock { $0 = nil }
                await cache.shutdown()
            }
        }
    }
}
