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

/// A protocol class of an application, beside that of the cache.
private final class OwnProtocol: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "own" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    override func startLoading() {
        guard let url = request.url else { return }
        let response = URLResponse(
            url: url,
            mimeType: "text/plain",
            expectedContentLength: 3,
            textEncodingName: nil
        )
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data("own".utf8))
        client?.urlProtocolDidFinishLoading(self)
    }
    override func stopLoading() {}
}

extension URLSessionTests {
    @Suite(
        "URLSession with a cache: what is known to trap or to hang in Foundation on Linux",
        .tags(.realTime),
        .timeLimit(.minutes(2))
    )
    struct KnownDefectTests {
        @Test(
            "a redirect is followed without the client, which traps; the response has the last URL"
        )
        func redirect() async throws {
            let delegate = SessionDelegate()
            try await SessionFixture.run(delegate: delegate) { fixture in
                fixture.origin.serve("/a", OriginScript(.redirect(to: "/b")))
                fixture.origin.serve("/b", .text("there", cacheControl: "max-age=60"))
                fixture.session.dataTask(with: try fixture.request("/a")).resume()
                let told = await delegate.all
                #expect(told.chunks == [Data("there".utf8)])
                #expect(told.response?.url?.path == "/b")
                var ranged = try fixture.request("/a")
                ranged.setValue("bytes=1-2", forHTTPHeaderField: "Range")
                let part = try await fixture.load(ranged)
                #expect(part.text == "he")
                #expect(part.response.url?.path == "/b")
            }
        }

        @Test("many redirects at once, as in #5524, all arrive: libcurl has no part in them")
        func concurrentRedirects() async throws {
            try await SessionFixture.run { fixture in
                for number in 0..<8 {
                    fixture.origin.serve(
                        "/from\(number)",
                        OriginScript(.redirect(to: "/to\(number)", status: 307))
                    )
                    fixture.origin.serve("/to\(number)", .text("there \(number)"))
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<200 {
                        group.addTask {
                            let request = try fixture.request("/from\(number % 8)")
                            #expect(try await fixture.load(request).text == "there \(number % 8)")
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }

        @Test("a download task fails with an error where it would trap (#3367, #5465)")
        func downloadTasks() async throws {
            let delegate = SessionDelegate()
            try await SessionFixture.run(delegate: delegate) { fixture in
                fixture.origin.serve("/a", .text("file"))
                let request = try fixture.request("/a")
                fixture.session.downloadTask(with: request).resume()
                let told = await delegate.all
                #expect(told.error?.code == .unsupportedURL)
                #expect(!told.hasFile)
                let error = await #expect(throws: URLError.self) {
                    try await fixture.session.download(for: request)
                }
                #expect(error?.localizedDescription.contains("TieredURLProtocol.download") == true)
            }
        }

        @Test("a download task of a session without the class gets its file as ever")
        func untouchedDownload() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("file"))
                let (file, _) = try await fixture.bare.download(for: fixture.request("/a"))
                #expect(try String(contentsOf: file, encoding: .utf8) == "file")
                try FileManager.default.removeItem(at: file)
            }
        }

        @Test("several protocol classes each get their requests (#3311)")
        func severalClasses() async throws {
            for isFirst in [true, false] {
                let own: [AnyClass] = [OwnProtocol.self]
                try await SessionFixture.run(protocols: isFirst ? own : []) { fixture in
                    fixture.origin.serve("/a", .text("cached", cacheControl: "max-age=60"))
                    if isFirst {
                        let url = try #require(URL(string: "own://host/a"))
                        let (data, _) = try await fixture.session.data(from: url)
                        #expect(data == Data("own".utf8))
                    }
                    _ = try await fixture.load(fixture.request("/a"))
                    let hit = try await fixture.load(fixture.request("/a"))
                    #expect(hit.text == "cached")
                    #expect(hit.response.cacheStatus.contains("hit"))
                }
            }
        }

        @Test("spellings of one URL are one entry, though canonicalRequest is never called (#3173)")
        func canonicalURLs() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("one", cacheControl: "max-age=60"))
                let port = fixture.origin.port
                for text in [
                    "http://127.0.0.1:\(port)/a", "HTTP://127.0.0.1:\(port)/a",
                    "http://127.0.0.1:\(port)/a#part",
                ] {
                    let url = try #require(URL(string: text))
                    let (data, response) = try await fixture.session.data(from: url)
                    #expect(data == Data("one".utf8))
                    #expect(response.url == url)
                }
                #expect(fixture.requests(for: "/a") == 1)
            }
        }

        @Test("a 401 with a challenge arrives as a response")
        func challenge() async throws {
            try await SessionFixture.run { fixture in
                var behaviour = OriginBehaviour.status(401)
                behaviour.overrides[.wwwAuthenticate] =
                    "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
                fixture.origin.serve("/a", OriginScript(behaviour))
                let response = try await fixture.load(fixture.request("/a")).response
                #expect(response.statusCode == 401)
            }
        }
    }
}
