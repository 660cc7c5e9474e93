import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Nothing that an origin sends is alive in the proxy's own web origin.
///
/// What browsers make of it is in `InertPageTests`, with a real one.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerInertTests {
    private func fields(_ values: KeyValuePairs<String, String>) throws -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in values {
            fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        return fields
    }

    private func expectInert(
        _ answer: RawResponse,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let policy = answer["content-security-policy"] ?? ""
        #expect(policy.hasPrefix("sandbox; default-src 'none';"), sourceLocation: sourceLocation)
        #expect(answer["x-content-type-options"] == "nosniff", sourceLocation: sourceLocation)
        #expect(answer["referrer-policy"] == "no-referrer", sourceLocation: sourceLocation)
    }

    @Test("Of an origin's fields only those come through that say what a player may need")
    func fieldsAreChosen() async throws {
        try await ProxyFixture.run { fixture in
            var film = OriginResource.fresh(200_000)
            film.fields = try fields([
                "Cache-Control": "max-age=60", "Access-Control-Allow-Origin": "*",
                "Access-Control-Expose-Headers": "X-A", "Content-Language": "de",
                "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT", "Icy-Name": "radio",
                "Content-Disposition": "inline", "Timing-Allow-Origin": "*",
                // What follows is not for the proxy's address.
                "Content-Security-Policy": "default-src *; report-uri https://evil.example/",
                "Content-Security-Policy-Report-Only": "report-uri https://evil.example/",
                "Service-Worker-Allowed": "/", "Link": "<https://evil.example/>; rel=preload",
                "Refresh": "0; url=https://evil.example/", "Set-Cookie": "a=b",
                "Clear-Site-Data": "\"*\"", "SourceMap": "https://evil.example/m",
                "Report-To": "{}", "Reporting-Endpoints": "d=\"https://evil.example\"",
                "NEL": "{}", "Referrer-Policy": "unsafe-url", "X-Content-Type-Options": "x",
                "Origin-Trial": "x", "Accept-CH": "Sec-CH-UA-Model", "Document-Policy": "x",
                "Speculation-Rules": "\"https://evil.example/\"", "Permissions-Policy": "x",
                "Expect-CT": "report-uri=\"https://evil.example/\"", "X-Frame-Options": "DENY",
                "Server-Timing": "a", "X-Anything": "y",
            ])
            fixture.origin.serve("/a.mp4", film)
            let allowed: Set<String> = [
                "accept-ranges", "access-control-allow-origin", "access-control-expose-headers",
                "age", "cache-control", "cache-status", "connection", "content-disposition",
                "content-language", "content-length", "content-range", "content-security-policy",
                "content-type", "date", "etag", "icy-name", "keep-alive", "last-modified",
                "referrer-policy", "timing-allow-origin", "x-content-type-options",
            ]
            let answers = [
                try await fixture.ask("/a.mp4"), try await fixture.ask("/a.mp4"),
                try await fixture.ask("/a.mp4", "Range: bytes=0-9"),
                try await fixture.ask("/a.mp4", method: "HEAD"),
                try await fixture.ask("/a.mp4", "If-None-Match: *"),
            ]
            for answer in answers {
                expectInert(answer)
                #expect(Set(answer.fields.map(\.name)).subtracting(allowed).isEmpty)
                #expect(!"\(answer.fields)".contains("evil.example"))
                #expect(answer.fields.filter { $0.name == "content-security-policy" }.count == 1)
                #expect(answer["access-control-allow-origin"] == "*")
                #expect(answer["icy-name"] == "radio")
            }
        }
    }

    @Test(
        "No document is made of what could be active",
        arguments: [
            "text/html", "TEXT/HTML; charset=utf-8", "image/svg+xml", "application/xhtml+xml",
            "application/xml", "text/xml", "application/dash+xml", "application/pdf", nil, "",
            "video/mp4, text/html", "video", "unknown/unknown", "text/css", "image/svg+xml;a=b",
        ]
    )
    func activeTypesAreRefused(type: String?) async throws {
        try await ProxyFixture.run { fixture in
            let text = String(repeating: "<script>alert(1)</script>", count: 100)
            fixture.origin.serve(
                "/a.mp4",
                .text(text, contentType: type, cacheControl: "max-age=60")
            )
            let destinations = ["document", "iframe", "frame", "embed", "object", "fencedframe"]
            for destination in destinations + ["Document", "something-new"] {
                let answer = try await fixture.ask("/a.mp4", "Sec-Fetch-Dest: \(destination)")
                #expect(answer.status == 403, "\(destination)")
                #expect(!answer.text.contains("script"))
                expectInert(answer)
            }
            for destination in ["video", "audio", "track", "image", "empty", "font"] {
                let answer = try await fixture.ask("/a.mp4", "Sec-Fetch-Dest: \(destination)")
                #expect(answer.status == 200 && answer.text == text)
                expectInert(answer)
            }
        }
    }

    @Test(
        "What can only be shown is shown alone, too",
        arguments: [
            "video/mp4", "audio/mpeg; a=b", "image/png", "text/plain; charset=utf-8", "text/vtt",
            "application/vnd.apple.mpegurl", "application/x-mpegURL", "application/octet-stream",
            "application/ogg", "application/mp4",
        ]
    )
    func passiveTypesAreShown(type: String) async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve(
                "/a.bin",
                .text("words", contentType: type, cacheControl: "max-age=60")
            )
            for destination in ["document", "iframe", "embed"] {
                let answer = try await fixture.ask("/a.bin", "Sec-Fetch-Dest: \(destination)")
                #expect(answer.status == 200 && answer.text == "words")
                expectInert(answer)
            }
        }
    }

    @Test(
        "What runs what it loads gets nothing, and the origin is not asked",
        arguments: [
            "serviceworker", "worker", "sharedworker", "audioworklet", "paintworklet", "xslt",
        ]
    )
    func workersAreRefused(destination: String) async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/sw.js", .text("x", contentType: "text/javascript"))
            let answer = try await fixture.ask("/sw.js", "Sec-Fetch-Dest: \(destination)")
            #expect(answer.status == 403)
            #expect(fixture.requests("/sw.js") == 0)
            let other = try await fixture.ask("/sw.js", "Service-Worker: script")
            #expect(other.status == 403)
            #expect(fixture.requests("/sw.js") == 0)
        }
    }

    @Test("Errors, other statuses and playlists are as inert")
    func otherAnswers() async throws {
        try await ProxyFixture.run { fixture in
            let page = "<script>alert(1)</script>"
            for (path, status) in [("/a", 404), ("/b", 203), ("/c", 403), ("/d", 300)] {
                let head =
                    "HTTP/1.1 \(status) X\r\nContent-Type: text/html\r\nConnection: close\r\n"
                let answer = "\(head)Content-Length: \(page.utf8.count)\r\n\r\n\(page)"
                fixture.origin.serve(path, .text(page), OriginScript(.raw(answer)))
                expectInert(try await fixture.ask(path))
                let shown = try await fixture.ask(path, "Sec-Fetch-Dest: document")
                #expect(shown.status >= 400 && !shown.text.contains("script"))
            }
            let playlist = "#EXTM3U\n#EXTINF:1,\n/a.ts\n"
            fixture.origin.serve("/p.m3u8", .text(playlist, contentType: "text/html"))
            expectInert(try await fixture.ask("/p.m3u8"))
            #expect(try await fixture.ask("/p.m3u8", "Sec-Fetch-Dest: iframe").status == 403)
        }
    }

    @Test("What a browser has for other servers of this machine does not reach an origin")
    func foreignCookies() async throws {
        try await ProxyFixture.run { fixture in
            let asks = "HTTP/1.1 401 X\r\nWWW-Authenticate: Basic realm=\"x\"\r\n"
            fixture.origin.serve("/a.mp4", .fresh(1000))
            let answer = OriginBehaviour.raw(
                "\(asks)Connection: close\r\nContent-Length: 0\r\n\r\n"
            )
            fixture.origin.serve("/b.mp4", .text(""), OriginScript(answer))
            let mode = "Sec-Fetch-Mode: no-cors"
            _ = try await fixture.ask("/a.mp4", "Cookie: jupyter=secret", mode)
            #expect(
                fixture.origin.log.exchanges(for: "/a.mp4").allSatisfy {
                    $0.fields[.cookie] == nil
                }
            )
            // A browser would send what its user types to every origin behind this address.
            #expect(try await fixture.ask("/b.mp4", mode)["www-authenticate"] == nil)
            #expect(try await fixture.ask("/b.mp4")["www-authenticate"] == "Basic realm=\"x\"")
        }
    }
}
