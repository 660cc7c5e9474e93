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

#if compiler(>=6.3.2) || !canImport(FoundationNetworking)
private let endsUnanswered = true
#else
// swift-corelibs-foundation #5457.
private let endsUnanswered = false
#endif

extension URLSessionTests {
    @Suite(
        "URLSession with a cache: what Foundation's own tests say of responses",
        .tags(.realTime),
        .timeLimit(.minutes(2))
    )
    struct FoundationResponseTests {
        // MARK: Cookies

        private static let cookie = OriginBehaviour.faithful.with {
            $0.overrides[.setCookie] = "a=1"
        }

        @Test("a cookie of a request past the cache is kept, and sent with all later ones")
        func cookies() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/set", OriginScript(Self.cookie))
                fixture.origin.serve("/a", .text("a"))
                let storage = fixture.session.configuration.httpCookieStorage
                let response = try await fixture.load(fixture.request("POST", "/set")).response
                #expect(response.value(forHTTPHeaderField: "Set-Cookie") == "a=1")
                #expect(storage?.cookies?.map(\.value) == ["1"])
                for method in ["GET", "POST"] {
                    _ = try await fixture.load(fixture.request(method, "/a"))
                    #expect(fixture.origin.log.exchanges.last?.fields[.cookie] == "a=1")
                }
                let other = fixture.otherSession()
                #expect(other.configuration.httpCookieStorage?.cookies?.isEmpty == true)
                other.finishTasksAndInvalidate()
            }
        }

        @Test("a response from the cache shows its cookie, which is not kept on Linux")
        func cookieOfCached() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/set", OriginScript(Self.cookie))
                let response = try await fixture.load(fixture.request("/set")).response
                #expect(response.value(forHTTPHeaderField: "Set-Cookie") == "a=1")
                #if canImport(FoundationNetworking)
                let storage = fixture.session.configuration.httpCookieStorage
                #expect(storage?.cookies?.isEmpty == true)
                #endif
            }
        }

        @Test("a session keeps no cookies, or sends none, where its configuration says so")
        func cookiePolicies() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/set", OriginScript(Self.cookie))
                fixture.origin.serve("/a", .text("a"))
                let sessions = [
                    fixture.otherSession { $0.httpCookieAcceptPolicy = .never },
                    fixture.otherSession { $0.httpShouldSetCookies = false },
                ]
                for (session, kept) in zip(sessions, [0, 1]) {
                    _ = try await session.data(for: fixture.request("POST", "/set"))
                    #expect(session.configuration.httpCookieStorage?.cookies?.count == kept)
                    for method in ["GET", "POST"] {
                        _ = try await session.data(for: fixture.request(method, "/a"))
                        #expect(fixture.origin.log.exchanges.last?.fields[.cookie] == nil)
                    }
                    session.finishTasksAndInvalidate()
                }
            }
        }

        // MARK: Challenges

        private static let challenge = OriginBehaviour.status(401).with {
            $0.overrides[.wwwAuthenticate] = "Basic realm=\"here\""
        }

        @Test("a challenge that a delegate answers is tried again with its credential")
        func answeredChallenge() async throws {
            let delegate = CallDelegate(
                credential: URLCredential(user: "user", password: "passwd", persistence: .none)
            )
            try await SessionFixture.run(delegate: delegate) { fixture in
                fixture.origin.serve("/a", .text("in"), .first(1, Self.challenge))
                let task = fixture.session.dataTask(with: try fixture.request("/a"))
                task.resume()
                #expect(await delegate.calls(until: "end").contains("challenge"))
                #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
                let sent = fixture.origin.log.exchanges(for: "/a").map { $0.fields[.authorization] }
                #expect(sent == [nil, "Basic dXNlcjpwYXNzd2Q="])
            }
        }

        @Test(
            "a challenge that nobody answers is a response",
            .enabled(if: endsUnanswered, "Foundation never ends such a task")
        )
        func unansweredChallenge() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", OriginScript(Self.challenge))
                let (text, response) = try await fixture.load(fixture.request("/a"))
                #expect(response.statusCode == 401)
                #expect(text == "status 401\n")
            }
        }

        @Test("a 401 without a challenge is a response")
        func unauthorized() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", OriginScript(.status(401)))
                let response = try await fixture.load(fixture.request("/a")).response
                #expect(response.statusCode == 401)
            }
        }

        // MARK: Odd responses

        @Test("fields need no space before their value")
        func tightFields() async throws {
            try await SessionFixture.run { fixture in
                let head = "HTTP/1.1 200 OK\r\nContent-Length:5\r\nContent-Type:text/html\r\n"
                fixture.origin.serve("/a", OriginScript(.raw(head + "X-A:b\r\n\r\nHello")))
                let (text, response) = try await fixture.load(fixture.request("/a"))
                #expect(text == "Hello")
                #expect(response.mimeType == "text/html")
                #expect(response.expectedContentLength == 5)
                #expect(response.value(forHTTPHeaderField: "x-a") == "b")
            }
        }

        @Test(
            "a status that does not exist, or that nothing asked for, is the response's",
            arguments: [999, 304]
        )
        func unknownStatus(status: Int) async throws {
            try await SessionFixture.run { fixture in
                let head = "HTTP/1.1 \(status) Unknown\r\nX-A: b\r\n\r\n"
                fixture.origin.serve("/a", OriginScript(.raw(head)))
                let response = try await fixture.load(fixture.request("/a")).response
                #expect(response.statusCode == status)
            }
        }

        @Test(
            "a body needs no length",
            arguments: [OriginResource.Framing.close, .chunked]
        )
        func withoutLength(framing: OriginResource.Framing) async throws {
            try await SessionFixture.run { fixture in
                var resource = OriginResource.text("no length", cacheControl: "max-age=60")
                resource.framing = framing
                fixture.origin.serve("/a", resource)
                for _ in 0..<2 {
                    let text = try await fixture.load(fixture.request("/a")).text
                    #expect(text == "no length")
                }
            }
        }

        @Test("a coding that was not asked for and is not known is left to the application")
        func brotli() async throws {
            try await SessionFixture.run { fixture in
                var resource = OriginResource.text("coded")
                resource.fields[.contentEncoding] = "br"
                fixture.origin.serve("/a", resource)
                let (text, response) = try await fixture.load(fixture.request("/a"))
                #expect(text == "coded")
                #expect(response.value(forHTTPHeaderField: "Content-Encoding") == "br")
            }
        }

        @Test(
            "what is no response is an error, with neither response nor body",
            arguments: [
                "HTTP/1.1\r\n\r\n\r\n", "HTTP/1.1 20 Few Digits\r\n\r\n",
                "HTTP/1.1 2000 Many Digits\r\n\r\n", "no status\r\n",
            ]
        )
        func noResponse(bytes: String) async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", OriginScript(.raw(bytes)))
                let (task, calls) = fixture.dataTask(try fixture.request("/a"))
                task.resume()
                let end = await calls.next
                #expect(end?.error != nil)
                #expect(end?.data == nil && end?.response == nil)
            }
        }
    }
}
