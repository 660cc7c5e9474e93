import FoundationEssentials
import SystemPackage
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Owners that do not answer as they should: a guest goes on by itself.
@Suite(.timeLimit(.minutes(10)))
struct OwnerTroubleTests {
    @Test func aSilentOwnerCostsASecondOnce() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/one", .fresh(100_000))
            fixture.origin.serve("/two", .fresh(100_000))
            let owner = try await fixture.join()
            let time = ManualTimeSource()
            let guest = try await fixture.join(time: time)
            await owner.service.stop()
            let listener = try SocketListener(in: fixture.directory)
            async let one = guest.cache.data(for: fixture.request("/one"))
            await time.waitForSleeper(within: .seconds(1))
            time.advance(by: .seconds(1))
            #expect(try await one == fixture.bytes("/one"))
            // Time stands still, and nobody waits for the owner.
            let two = try await guest.cache.data(for: fixture.request("/two"))
            #expect(try two == fixture.bytes("/two"))
            withExtendedLifetime(listener) {}
        }
    }

    @Test(arguments: [
        "", "SSH-2.0-server\r\n\r\n", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 502 Bad Gateway\r\n"
            + "TieredCache-Failure: origin\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 102 Processing\r\n\r\n",
    ])
    func otherAnswersAreNone(_ text: String) async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(100_000))
            let owner = try await fixture.join()
            let guest = try await fixture.join()
            await owner.service.stop()
            let listener = try SocketListener(in: fixture.directory)
            async let answered: Void = onThread { try listener.answer(Array(text.utf8)) }
            let bytes = try await guest.cache.data(for: fixture.request("/film"))
            #expect(try bytes == fixture.bytes("/film"))
            try await answered
        }
    }

    @Test func anOwnerWithoutAResponseIsNotWaitedForToTheEnd() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(100_000))
            let owner = try await fixture.join()
            let time = ManualTimeSource()
            let guest = try await fixture.join(time: time) { $0.timeout = .seconds(30) }
            await owner.service.stop()
            let listener = try SocketListener(in: fixture.directory)
            let (isAsked, gate) = (ThreadGate(), ThreadGate())
            // It is there, and says nothing more.
            async let answered: Void = onThread {
                let answer = Array("HTTP/1.1 102 Processing\r\n\r\n".utf8)
                try listener.answer(answer) {
                    isAsked.open()
                    gate.wait()
                }
            }
            async let bytes = guest.cache.data(for: fixture.request("/film"))
            // Who asks has set its alarms.
            try await onThread { isAsked.wait() }
            time.advance(by: .seconds(16))
            #expect(try await bytes == fixture.bytes("/film"))
            gate.open()
            try await answered
        }
    }

    @Test func oneThatOwnsNothingAnyMoreSaysSo() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(1000))
            let time = ManualTimeSource()
            let before = try await fixture.join(time: time)
            let directory = fixture.directory
            let (isConnected, gate) = (ThreadGate(), ThreadGate())
            let url = fixture.origin.url("/film")
            async let answer = onThread {
                let connection = try connection(toOwnerOf: directory)
                isConnected.open()
                gate.wait()
                try connection.send(
                    "GET /1/\(url) HTTP/1.1\r\nHost: localhost\r\nTieredCache-Priority: 2\r\n\r\n"
                )
                return try connection.receiveHead()
            }
            try await onThread { isConnected.wait() }
            // Its lock is gone, and another process has the next one.
            #expect(unlink(directory.appending("LOCK").string) == 0)
            let after = try await fixture.join()
            #expect(after.cache.storageError == nil)
            time.advance(by: .seconds(11))
            _ = try await before.cache.entry(for: fixture.request("/film"))
            #expect(before.cache.storageError?.code == .notOwner)
            gate.open()
            let head = try await answer
            #expect(head.hasPrefix("HTTP/1.1 502 ") && head.contains("notOwner"), "\(head)")
            // It asks the new owner as its guest.
            #expect(try await before.cache.data(for: fixture.request("/film")).count == 1000)
            #expect(try await after.cache.entry(for: fixture.request("/film"))?.isComplete == true)
        }
    }

    @Test func aBodyThatBreaksOffIsGoneOnWith() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(100_000))
            let owner = try await fixture.join()
            let guest = try await fixture.join { $0.retries = 3 }
            await owner.service.stop()
            let bytes = try fixture.bytes("/film")
            let tag = try #require(fixture.origin.resource("/film")?.entityTagValue)
            let head =
                "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nETag: \(tag)\r\n"
                + "Cache-Control: max-age=3600\r\nContent-Length: 100000\r\n\r\n"
            let start = Array(head.utf8) + bytes.prefix(40_000)
            let listener = try SocketListener(in: fixture.directory)
            async let answered: Void = onThread { try listener.answer(start) }
            #expect(try await guest.cache.data(for: fixture.request("/film")) == bytes)
            try await answered
            #expect(fixture.sent("/film") == 60_000)
        }
    }

    @Test func requestsOfNoGuestAreRefused() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(1000))
            _ = try await fixture.join()
            for (target, lines) in [
                ("/2/http://127.0.0.1/", "TieredCache-Priority: 2\r\n"), ("/", ""), ("/1/", ""),
                ("/1/ftp://127.0.0.1/", "TieredCache-Priority: 2\r\n"),
                ("/1/" + fixture.origin.url("/film"), ""),
                ("/1/" + fixture.origin.url("/film"), "TieredCache-Priority: 9\r\n"),
                (
                    "/1/" + fixture.origin.url("/film"),
                    "TieredCache-Priority: 2\r\nTieredCache-Key: no Base64\r\n"
                ),
            ] {
                let directory = fixture.directory
                let head = try await onThread {
                    let connection = try connection(toOwnerOf: directory)
                    try connection.send("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\(lines)\r\n")
                    return try connection.receiveHead()
                }
                #expect(head.hasPrefix("HTTP/1.1 502 "), "\(target)")
                #expect(head.contains("TieredCache-Failure: unknown"), "\(target)")
            }
            #expect(fixture.origin.log.exchanges.isEmpty)
        }
    }
}
