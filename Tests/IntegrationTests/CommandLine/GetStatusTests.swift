import FoundationEssentials
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheCLI

/// What an origin that refuses, fails or breaks the protocol does to `get`.
@Suite("get: failures of the origin", .tags(.realTime), .timeLimit(.minutes(10)))
struct GetStatusTests {
    @Test(
        "A status of 400 or more is 69, names the status, writes and stores nothing",
        arguments: [400, 401, 403, 404, 410, 416, 418, 451, 500, 501]
    )
    func refused(status: Int) async throws {
        try await Workplace.with { place in
            // Without freshness, the rules may store some of them; nothing must be answered later.
            let answer = OriginBehaviour.status(status).with {
                $0.overrides[.cacheControl] = "no-store"
            }
            place.origin.serve("/a", OriginScript(answer))
            let url = place.origin.url("/a")
            let outcome = try await place.run("get", url, "--retries", "1")
            outcome.expectFailure(69, url, "\(status)")
            #expect(outcome.output.isEmpty)
            let file = try await place.get("/a", into: "a", "--retries", "1")
            file.expectFailure(69, "\(status)")
            #expect(place.files.names == ["cache"])
            let list = try await place.run("list", "--json")
            list.expectDone()
            #expect(list.output.isEmpty)
        }
    }

    @Test("A status that the rules store is told again from the cache")
    func storedNegative() async throws {
        try await Workplace.with { place in
            let gone = OriginBehaviour.status(404).with {
                $0.overrides[.cacheControl] = "max-age=3600"
            }
            place.origin.serve("/a", OriginScript(gone))
            let url = place.origin.url("/a")
            for policy in ["default", "default", "cache-else-load", "cache-only"] {
                let outcome = try await place.get("/a", into: "a", "--policy", policy)
                outcome.expectFailure(69, url, "404")
            }
            #expect(place.origin.log.exchanges.count == 1)
            #expect(place.files.names == ["cache"])
        }
    }

    @Test("A failure does not cost what is stored")
    func keepsStored() async throws {
        try await Workplace.with { place in
            let resource = OriginResource.generated(length: 400_000, cacheControl: "max-age=0")
            place.origin.serve("/a", resource, .first(1, .faithful).then(.status(500)))
            try await place.get("/a", into: "a").expectDone()
            let failed = try await place.get("/a", into: "b", "--retries", "1")
            failed.expectFailure(69, "500")
            let stored = try await place.get("/a", into: "b", "--policy", "cache-only")
            stored.expectReport(place.origin.url("/a"), source: "disk", fromCache: 400_000)
        }
    }

    @Test("No server listens, or no such host: 69 in one line")
    func unreachable() async throws {
        try await Workplace.with { place in
            let url = place.origin.url("/a")
            await place.origin.stop()
            let outcome = try await place.run("get", url, "--retries", "2")
            outcome.expectFailure(69, url)
            let host = "http://no-such-host.invalid/a"
            try await place.run("get", host, "--retries", "1").expectFailure(69, host)
        }
    }

    @Test(
        "A peer that sends garbage is 69 in one line, and is not asked again",
        arguments: [
            "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 abc\r\n\r\n", "\u{0}\u{1}\u{2}\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/9.9 200 OK\r\n\r\n", "",
        ]
    )
    func garbage(text: String) async throws {
        try await Workplace.with { place in
            place.origin.serve("/a", OriginScript(.raw(text)))
            let url = place.origin.url("/a")
            let outcome = try await place.get("/a", into: "a", "--retries", "2")
            outcome.expectFailure(69, url)
            try await place.run("prefetch", url, "--retries", "2").expectFailure(69, url)
            // An end without a word may have been a connection that was about to be closed.
            #expect(place.exchanges("/a").count == (text.isEmpty ? 4 : 2))
            #expect(place.files.names.filter { $0 != "cache" }.isEmpty)
        }
    }

    @Test("Attempts without progress are counted; progress starts the count again")
    func retries() async throws {
        try await Workplace.with { place in
            place.origin.serve("/a", OriginScript(.dropped(.reset)))
            let outcome = try await place.run("get", place.origin.url("/a"), "--retries", "3")
            outcome.expectFailure(69, "/a")
            #expect(place.exchanges("/a").count == 3)
            let script = OriginScript.first(2, .dropped(.finish)).then(1, .cut(after: 200_000))
                .then(2, .dropped(.finish))
            place.origin.serveFresh("/b", length: 500_000, script)
            let good = try await place.get("/b", into: "b", "--retries", "3")
            good.expectDone()
            #expect(place.exchanges("/b").count == 6)
            #expect(try place.file("b", equals: "/b"))
        }
    }

    @Test("A service that is not available is tried again, and its wish is honoured")
    func retryAfter() async throws {
        try await Workplace.with { place in
            let busy = OriginBehaviour.status(503, retryAfter: "1")
            place.origin.serveFresh("/a", length: 1000, .first(1, busy))
            try await place.get("/a", into: "a").expectDone()
            let exchanges = place.exchanges("/a")
            #expect(exchanges.map(\.status) == [503, 200])
            let wait = exchanges[0].started.duration(to: exchanges[1].started)
            #expect(wait >= .seconds(1))
        }
    }

    @Test("No byte for the time given: 69", arguments: [true, false])
    func timeout(afterHead: Bool) async throws {
        try await Workplace.with { place in
            let silent: OriginBehaviour =
                afterHead
                ? .stall(after: 1000) : OriginBehaviour.faithful.with { $0.gate = OriginGate() }
            place.origin.serveFresh("/a", length: 1_000_000, OriginScript(silent))
            let outcome = try await place.get(
                "/a",
                into: "a",
                "--timeout",
                "0.2",
                "--retries",
                "2"
            )
            outcome.expectFailure(69, place.origin.url("/a"))
        }
    }

    @Test("A redirect is followed, a loop is not")
    func redirects() async throws {
        try await Workplace.with { place in
            let there = OriginBehaviour.status(302).with { $0.overrides[.location] = "/b" }
            place.origin.serve("/a", OriginScript(there))
            place.origin.serveFresh("/b", length: 1000)
            let outcome = try await place.get("/a", into: "a")
            outcome.expectReport(place.origin.url("/a"), source: "origin", fromOrigin: 1000)
            let loop = OriginBehaviour.status(302).with { $0.overrides[.location] = "/c" }
            place.origin.serve("/c", OriginScript(loop))
            try await place.get("/c", into: "c").expectFailure(69, place.origin.url("/c"))
        }
    }
}
