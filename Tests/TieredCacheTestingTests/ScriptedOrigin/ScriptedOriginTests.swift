import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCache

@testable import TieredCacheTesting

/// Speaks to the origin byte by byte, so that no client's leniency hides a mistake.
@Suite("The scripted origin on the wire", .tags(.realTime), .timeLimit(.minutes(10)))
struct ScriptedOriginTests: ScriptedOriginSuite {
    let io = IOExecutor(threads: 4)

    @Test("A whole body, its fields, and the log", arguments: [0, 1, 4_097, 3_000_000] as [Int64])
    func whole(length: Int64) async throws {
        try await withOrigin { origin in
            let resource = OriginResource.generated(length: length, cacheControl: "max-age=60")
            origin.serve("/a", resource)
            let (head, body) = try await exchange(origin, "/a?q=1", fields: ["X-A: b"])
            #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n"))
            for line in [
                "Content-Length: \(length)", "Cache-Control: max-age=60", "Accept-Ranges: bytes",
                "ETag: \"1-\(length)-v1\"", "Content-Type: application/octet-stream",
            ] {
                #expect(head.contains("\r\n\(line)\r\n"), "\(line)")
            }
            #expect(Int64(body.count) == length)
            #expect(try #require(resource.generatedBody).matches(body))
            await origin.waitUntil { $0.exchanges.first?.outcome == .complete }
            let exchange = try #require(origin.log.exchanges(for: "/a").first)
            #expect(exchange.method == "GET")
            #expect(exchange.target == "/a?q=1")
            #expect(exchange.fields.contains { $0.name.rawName == "X-A" && $0.value == "b" })
            #expect(exchange.status == 200)
            #expect(exchange.bodyBytesWritten == length)
            #expect(exchange.ended != nil)
        }
    }

    @Test("Parts, and the range that does not exist")
    func parts() async throws {
        try await withOrigin { origin in
            let resource = OriginResource.generated(length: 10_000)
            origin.serve("/a", resource)
            let content = try #require(resource.generatedBody)
            for (field, first, last) in [
                ("bytes=0-0", 0, 0), ("bytes=5000-", 5_000, 9_999), ("bytes=-10", 9_990, 9_999),
            ] as [(String, Int64, Int64)] {
                let (head, body) = try await exchange(origin, "/a", fields: ["Range: \(field)"])
                #expect(head.hasPrefix("HTTP/1.1 206 Partial Content\r\n"))
                #expect(head.contains("Content-Range: bytes \(first)-\(last)/10000\r\n"))
                #expect(firstDifference(body, content.bytes(in: first..<last + 1)) == nil)
            }
            let (head, body) = try await exchange(origin, "/a", fields: ["Range: bytes=10000-"])
            #expect(head.hasPrefix("HTTP/1.1 416 "))
            #expect(head.contains("Content-Range: bytes */10000\r\n"))
            #expect(body.isEmpty)
        }
    }

    @Test("If-Range, and an origin without ranges")
    func ifRange() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .generated(length: 100))
            let range = "Range: bytes=1-2"
            let (same, _) = try await exchange(
                origin,
                "/a",
                fields: [range, "If-Range: \"1-100-v1\""]
            )
            #expect(same.hasPrefix("HTTP/1.1 206"))
            origin.update("/a") { $0.version = 2 }
            let (new, _) = try await exchange(
                origin,
                "/a",
                fields: [range, "If-Range: \"1-100-v1\""]
            )
            #expect(new.hasPrefix("HTTP/1.1 200"))
            origin.update("/a") { $0.acceptsRanges = false }
            let (without, body) = try await exchange(origin, "/a", fields: [range])
            #expect(without.hasPrefix("HTTP/1.1 200"))
            #expect(!without.contains("Accept-Ranges"))
            #expect(body.count == 100)
        }
    }

    @Test("304 carries validators and no body; HEAD carries the head of GET")
    func notModifiedAndHead() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .generated(length: 100, cacheControl: "no-cache"))
            let (head, body) = try await exchange(
                origin,
                "/a",
                fields: ["If-None-Match: \"1-100-v1\""]
            )
            #expect(head.hasPrefix("HTTP/1.1 304 Not Modified\r\n"))
            #expect(head.contains("ETag: \"1-100-v1\"\r\n"))
            #expect(head.contains("Cache-Control: no-cache\r\n"))
            #expect(!head.contains("Content-Length"))
            #expect(body.isEmpty)
            let (headHead, headBody) = try await exchange(origin, "/a", method: "HEAD")
            let (getHead, getBody) = try await exchange(origin, "/a")
            let date = Set([headHead, getHead].map { $0.contains("\r\nDate: ") })
            #expect(date == [true])
            #expect(withoutDate(headHead) == withoutDate(getHead))
            #expect(headBody.isEmpty)
            #expect(getBody.count == 100)
        }
    }

    /// The two responses may fall into different seconds.
    private func withoutDate(_ head: String) -> [Substring] {
        head.split(separator: "\r\n").filter { !$0.hasPrefix("Date: ") }
    }

    @Test("Chunked and close-delimited bodies")
    func framings() async throws {
        try await withOrigin { origin in
            var resource = OriginResource.generated(length: 300_000)
            resource.framing = .chunked
            origin.serve("/chunked", resource)
            let (head, body) = try await exchange(origin, "/chunked")
            #expect(head.contains("Transfer-Encoding: chunked\r\n"))
            #expect(!head.contains("Content-Length"))
            #expect(try #require(resource.generatedBody).matches(try dechunked(body)))
            resource.framing = .close
            origin.serve("/close", resource)
            let (head2, body2) = try await exchange(origin, "/close")
            #expect(head2.contains("Connection: close\r\n"))
            #expect(!head2.contains("Content-Length"))
            #expect(body2.count == 300_000)
            #expect(try #require(resource.generatedBody).matches(body2))
        }
    }

    private func dechunked(_ bytes: [UInt8]) throws -> [UInt8] {
        var rest = bytes[...]
        var result: [UInt8] = []
        while true {
            let line = rest.prefix { $0 != 13 }
            let count = try #require(Int(String(decoding: line, as: UTF8.self), radix: 16))
            rest = rest.dropFirst(line.count + 2)
            guard count > 0 else {
                #expect(Array(rest) == [13, 10])
                return result
            }
            result += rest.prefix(count)
            rest = rest.dropFirst(count)
            #expect(rest.prefix(2) == [13, 10])
            rest = rest.dropFirst(2)
        }
    }
}
