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
    @Suite(
        "URLSession with a cache: responses of all kinds",
        .tags(.realTime),
        .timeLimit(.minutes(2))
    )
    struct LoadAnswerTests {
        @Test("an error has its body, also where it is stored", arguments: [400, 404, 500, 503])
        func errors(status: Int) async throws {
            try await SessionFixture.run { fixture in
                var behaviour = OriginBehaviour.status(status)
                behaviour.overrides[.cacheControl] = "max-age=60"
                fixture.origin.serve("/a", OriginScript(behaviour))
                for _ in 0..<2 {
                    let (text, response) = try await fixture.load(fixture.request("/a"))
                    #expect(response.statusCode == status)
                    #expect(text == "status \(status)\n")
                }
                #expect(fixture.requests(for: "/a") == 1)
            }
        }

        @Test("a redirect that does not say where to is a response")
        func redirectToNowhere() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", OriginScript(.status(302)))
                let (text, response) = try await fixture.load(fixture.request("/a"))
                #expect(response.statusCode == 302)
                #expect(text == "status 302\n")
            }
        }

        @Test("a body that was coded unasked is decoded, in each form, also where it is stored")
        func coded() async throws {
            for answering in [TieredURLProtocol.self, StreamingProtocol.self] {
                let delegate = SessionDelegate()
                try await SessionFixture.run(delegate: delegate, answering: answering) { fixture in
                    let length: Int64 = 1 << 20
                    fixture.origin.serve(
                        "/a",
                        .generated(length: length, cacheControl: "max-age=60"),
                        OriginScript(.gzipCoded)
                    )
                    let expected = GeneratedBody(seed: 1, length: length)
                    let request = try fixture.request("/a")
                    fixture.session.dataTask(with: request).resume()
                    let told = await delegate.all
                    #expect(expected.matches([UInt8](Data(told.chunks.joined()))))
                    let response = try #require(told.response as? HTTPURLResponse)
                    #expect(response.value(forHTTPHeaderField: "Content-Encoding") == nil)
                    #expect(response.expectedContentLength == -1)
                    let (file, _) = try await TieredURLProtocol.download(for: request)
                    #expect(expected.matches([UInt8](try Data(contentsOf: file))))
                    try FileManager.default.removeItem(at: file)
                    #expect(fixture.requests(for: "/a") == 1)
                }
            }
        }

        @Test("a body that is not coded as it says fails")
        func wronglyCoded() async throws {
            try await SessionFixture.run { fixture in
                var plain = OriginBehaviour.faithful
                plain.overrides[.contentEncoding] = "gzip"
                fixture.origin.serve("/a", .text("not gzip"), OriginScript(plain))
                let error = await #expect(throws: URLError.self) {
                    try await fixture.load(fixture.request("/a"))
                }
                #expect(error?.code == .badServerResponse)
            }
        }

        @Test("fields that may not be stored arrive with the response itself")
        func fieldsNotStored() async throws {
            try await SessionFixture.run { fixture in
                var resource = OriginResource.text(
                    "a",
                    cacheControl: "max-age=60, no-cache=\"X-A\""
                )
                resource.fields[try #require(HTTPField.Name("X-A"))] = "1"
                fixture.origin.serve("/a", resource)
                let response = try await fixture.load(fixture.request("/a")).response
                #expect(response.value(forHTTPHeaderField: "X-A") == "1")
            }
        }
    }
}
