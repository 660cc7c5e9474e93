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

extension URLSessionTests {
    @Suite("URLSession with a cache: loads", .tags(.realTime), .timeLimit(.minutes(2)))
    struct LoadingTests {
        @Test("an asynchronous call gets a stored response, as a miss and as a hit")
        func asynchronous() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("first", cacheControl: "max-age=60"))
                let first = try await fixture.load(fixture.request("/a"))
                let second = try await fixture.load(fixture.request("/a"))
                #expect([first.text, second.text] == ["first", "first"])
                #expect(first.response.cacheStatus.contains("fwd=uri-miss"))
                #expect(second.response.cacheStatus.contains("hit"))
                #expect(fixture.requests(for: "/a") == 1)
            }
        }

        @Test("the response has what Foundation makes of it without the cache")
        func response() async throws {
            try await SessionFixture.run { fixture in
                var resource = OriginResource.text("täxt", contentType: "text/html; charset=UTF-8")
                resource.fields[.contentDisposition] = "attachment; filename=\"page.html\""
                resource.fields[.cacheControl] = "max-age=60"
                fixture.origin.serve("/dir/a.html", resource)
                let request = try fixture.request("/dir/a.html?q=1#part")
                let (data, expected) = try await fixture.bare.data(for: request)
                for _ in 0..<2 {
                    let (text, response) = try await fixture.load(request)
                    #expect(text == String(decoding: data, as: UTF8.self))
                    #expect(response.statusCode == 200)
                    #expect(response.url == expected.url)
                    #expect(response.mimeType == expected.mimeType)
                    #expect(response.textEncodingName == expected.textEncodingName)
                    #expect(response.expectedContentLength == expected.expectedContentLength)
                    #expect(response.suggestedFilename == expected.suggestedFilename)
                    #expect(response.value(forHTTPHeaderField: "etag") != nil)
                }
            }
        }

        @Test("a completion handler gets a body of many chunks whole")
        func completionHandler() async throws {
            try await SessionFixture.run { fixture in
                let length: Int64 = 3 << 20
                fixture.origin.serve(
                    "/film",
                    .generated(length: length, cacheControl: "max-age=60")
                )
                let expected = GeneratedBody(seed: 1, length: length)
                for _ in 0..<2 {
                    let request = try fixture.request("/film")
                    let data = try await withCheckedThrowingContinuation { continuation in
                        fixture.session.dataTask(with: request) { data, _, error in
                            continuation.resume(with: error.map { .failure($0) } ?? .success(data))
                        }.resume()
                    }
                    #expect(expected.matches([UInt8](try #require(data))))
                    #expect(data?.count == Int(length))
                }
                #expect(fixture.requests(for: "/film") == 1)
            }
        }

        @Test("a delegate gets the body in one piece, or in several where the class says so")
        func delegate() async throws {
            for answering in [TieredURLProtocol.self, StreamingProtocol.self] {
                let delegate = SessionDelegate()
                try await SessionFixture.run(delegate: delegate, answering: answering) { fixture in
                    let length: Int64 = 4 << 20
                    fixture.origin.serve("/film", .generated(length: length))
                    let request = try fixture.request("/film")
                    fixture.session.dataTask(with: request).resume()
                    let told = await delegate.all
                    let bytes = [UInt8](Data(told.chunks.joined()))
                    #expect(bytes.count == Int(length))
                    #expect(GeneratedBody(seed: 1, length: length).matches(bytes))
                    #expect((told.chunks.count == 1) == !answering.streams)
                    #expect(told.error == nil)
                    #expect(told.completions == 1)
                }
            }
        }

        @Test("HEAD, a range and a condition are answered from what is stored")
        func selections() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("0123456789", cacheControl: "max-age=60"))
                let whole = try await fixture.load(fixture.request("/a")).response
                var request = try fixture.request("/a")
                request.setValue("bytes=2-4", forHTTPHeaderField: "Range")
                let part = try await fixture.load(request)
                #expect(part.text == "234")
                #expect(part.response.statusCode == 206)
                request = try fixture.request("/a")
                request.setValue(
                    whole.value(forHTTPHeaderField: "ETag"),
                    forHTTPHeaderField: "If-None-Match"
                )
                #expect(try await fixture.load(request).response.statusCode == 304)
                request = try fixture.request("/a")
                request.httpMethod = "HEAD"
                let head = try await fixture.load(request)
                #expect(head.text.isEmpty)
                #expect(head.response.expectedContentLength == 10)
                #expect(fixture.requests(for: "/a") == 1)
            }
        }

        @Test("other methods and bodies go on untouched, and all without a cache")
        func untouched() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("plain", cacheControl: "max-age=60"))
                var post = try fixture.request("/a")
                post.httpMethod = "POST"
                post.httpBody = Data("body".utf8)
                let posted = try await fixture.load(post)
                #expect(posted.text == "plain")
                #expect(posted.response.cacheStatus == "")
                TieredURLProtocol.use(nil)
                #expect(try await fixture.load(fixture.request("/a")).response.cacheStatus == "")
                #expect(fixture.origin.log.exchanges(for: "/a").map(\.method) == ["POST", "GET"])
            }
        }

        @Test("errors have the codes that a session gives")
        func errors() async throws {
            try await SessionFixture.run { fixture in
                let gone = try #require(URL(string: "http://127.0.0.1:1/"))
                let refused = await #expect(throws: URLError.self) {
                    try await fixture.session.data(from: gone)
                }
                #expect(refused?.code == .cannotConnectToHost)
                #expect(refused?.failingURL == gone)
                fixture.origin.serve("/cut", .text("longer"), OriginScript(.dropped()))
                let cut = await #expect(throws: URLError.self) {
                    try await fixture.load(fixture.request("/cut"))
                }
                #expect(cut?.code == .networkConnectionLost)
            }
        }
    }
}
