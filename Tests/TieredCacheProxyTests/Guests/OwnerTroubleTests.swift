import FoundationEssentials
import HTTPCaching
import SystemPackage
import TestParts
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
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
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
            // Time stands still, and no request waits for the owner.
            let two = try await guest.cache.data(for: fixture.request("/two"))
            #expect(try two == fixture.bytes("/two"))
            withExtendedLifetime(listener) {}
        }
    }

    @Test func oneThatHasJustBegunIsWaitedFor() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(100_000))
            let owner = try await fixture.join()
            await owner.service.stop()
            let time = ManualTimeSource(wall: try fixture.ownerBegan())
            let guest = try await fixture.join(time: time)
            async let bytes = guest.cache.data(for: fixture.request("/film"))
            await time.waitForSleeper(within: .milliseconds(10))
            let service = GuestService(
                cache: owner.cache,
                directory: URL(filePath: fixture.directory.string)
            )
            await service.untilListening()
            time.advance(by: .milliseconds(10))
            #expect(try await bytes == fixture.bytes("/film"))
            #expect(fixture.sent("/film") == 100_000)
            let request = try fixture.request("/film")
            #expect(try await owner.cache.entry(for: request)?.isComplete == true)
            await service.stop()
        }
    }

    @Test func oneWithoutAServiceIsNotWaitedFor() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(100_000))
            let owner = try await fixture.join()
            await owner.service.stop()
            let second = try fixture.ownerBegan().advanced(by: .seconds(1))
            let guest = try await fixture.join(time: ManualTimeSource(wall: second))
            // Time stands still.
            let bytes = try await guest.cache.data(for: fixture.request("/film"))
            #expect(try bytes == fixture.bytes("/film"))
        }
    }

    @Test func oneThatHasGoneIsNotWaitedFor() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/one", .fresh(100_000))
            fixture.origin.serve("/two", .fresh(100_000))
            let owner = try await fixture.join()
            let time = ManualTimeSource(wall: try fixture.ownerBegan())
            let guest = try await fixture.join(time: time)
            let one = try await guest.cache.data(for: fixture.request("/one"))
            #expect(try one == fixture.bytes("/one"))
            await owner.stop()
            // Time stands still.
            let two = try await guest.cache.data(for: fixture.request("/two"))
            #expect(try two == fixture.bytes("/two"))
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

    @Test func theOriginHasATimeoutOfItsOwn() async throws {
        try await GuestFixture.run { fixture in
            let origin = OriginGate()
            let held = OriginBehaviour.faithful.with { $0.gate = origin }
            fixture.origin.serve("/film", .fresh(100_000), OriginScript(held))
            let owner = try await fixture.join()
            let time = ManualTimeSource()
            let guest = try await fixture.join(time: time) { $0.timeout = .milliseconds(1500) }
            await owner.service.stop()
            let listener = try SocketListener(in: fixture.directory)
            let (isAsked, gate) = (ThreadGate(), ThreadGate())
            let busy =
                "HTTP/1.1 502 Bad Gateway\r\nTieredCache-Failure: busy\r\nContent-Length: 0\r\n\r\n"
            async let answered: Void = onThread {
                try listener.answer(Array("HTTP/1.1 102 Processing\r\n\r\n".utf8)) { connection in
                    isAsked.open()
                    gate.wait()
                    try connection.send(busy)
                }
            }
            async let bytes = guest.cache.data(for: fixture.request("/film"))
            try await onThread { isAsked.wait() }
            time.advance(by: .milliseconds(350))
            gate.open()
            await fixture.origin.waitUntil { !$0.exchanges(for: "/film").isEmpty }
            // The owner's time and the origin's are more than the timeout.
            time.advance(by: .milliseconds(1400))
            origin.open()
            #expect(try await bytes == fixture.bytes("/film"))
            try await answered
            #expect(fixture.origin.log.exchanges(for: "/film").count == 1)
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
            // The guest has set its alarm.
            try await onThread { isAsked.wait() }
            await fixture.advance(time, by: .seconds(1), untilAsked: "/film")
            #expect(try await bytes == fixture.bytes("/film"))
            gate.open()
            try await answered
        }
    }

    @Test func oneThatOwnsNothingAnyMoreStopsListening() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(1000))
            let time = ManualTimeSource()
            let before = try await fixture.join(time: time)
            let directory = fixture.directory
            let isConnected = ThreadGate()
            async let received = onThread {
                let connection = try connection(toOwnerOf: directory)
                isConnected.open()
                return try connection.receiveAll()
            }
            try await onThread { isConnected.wait() }
            // One that is connected and not accepted yet is reset with the listener.
            while await before.service.clients().connected == 0 { await Task.yield() }
            // Its lock is gone, and another process has the next one.
            #expect(unlink(directory.appending("LOCK").string) == 0)
            let after = try await fixture.join()
            #expect(after.cache.storageError == nil)
            time.advance(by: .seconds(11))
            _ = try await before.cache.entry(for: fixture.request("/film"))
            #expect(before.cache.storageError?.code == .notOwner)
            #expect(try await received == [])
            // It asks the new owner as its guest.
            #expect(try await before.cache.data(for: fixture.request("/film")).count == 1000)
            #expect(try await after.cache.entry(for: fixture.request("/film"))?.isComplete == true)
        }
    }

    @Test func oneThatStopsLateLeavesTheNameToTheNext() async throws {
        try await GuestFixture.run { fixture in
            let before = try await fixture.join()
            #expect(unlink(fixture.directory.appending("LOCK").string) == 0)
            let after = try await fixture.join()
            let directory = fixture.directory
            // Which has not looked at the directory since.
            await before.service.stop()
            #expect(OwnerSocket.isThere(in: directory))
            try await onThread { _ = try connection(toOwnerOf: directory) }
            await after.service.stop()
            #expect(!OwnerSocket.isThere(in: directory))
        }
    }

    @Test func theSocketIsTheUsersAlone() async throws {
        try await GuestFixture.run { fixture in
            let owner = try await fixture.join()
            var status = stat()
            #expect(lstat(fixture.directory.appending("OWNER").string, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            await owner.service.stop()
            // What is no socket is not ours to replace.
            let name = fixture.directory.appending("OWNER").string
            #expect(mkdir(name, 0o700) == 0)
            let service = GuestService(
                cache: owner.cache,
                directory: URL(filePath: fixture.directory.string)
            )
            await service.untilListening()
            #expect(await service.clients() == (0, 0))
            await service.stop()
            #expect(rmdir(name) == 0)
        }
    }

    @Test func aBodyThatBreaksOffIsGoneOnWith() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(100_000))
            let owner = try await fixture.join()
            let guest = try await fixture.join(time: ManualTimeSource())
            await owner.service.stop()
            let bytes = try fixture.bytes("/film")
            let start = try fixture.beginning(of: "/film", count: 40_000)
            let listener = try SocketListener(in: fixture.directory)
            async let answered: Void = onThread { try listener.answer(start) }
            // Time stands still: no attempt of the origin has failed.
            #expect(try await guest.cache.data(for: fixture.request("/film")) == bytes)
            try await answered
            #expect(fixture.sent("/film") == 60_000)
        }
    }

    @Test("What a living owner has passed on and taken back is fetched anew")
    func aBodyThatIsTakenBackIsFetchedAnew() async throws {
        try await GuestFixture.run { fixture in
            let paths = ["/stored", "/taken", "/killed"]
            for path in paths { fixture.origin.serve(path, .fresh(100_000)) }
            let owner = try await fixture.join()
            let guest = try await fixture.join { $0.memoryLimit = 1 }
            let response = try await owner.cache.response(for: fixture.request("/stored"))
            let generation = try #require(response.generation)
            _ = try await response.body.collect(upTo: 100_000)
            await owner.service.stop()
            for path in paths {
                var sent = try fixture.beginning(of: path, count: 40_000, generation: generation)
                // What it had believed of a contradictory origin.
                if path == "/taken" { sent[sent.count - 1] ^= 1 }
                let start = sent
                async let answered: Void = onThread { [directory = fixture.directory] in
                    let listener = try SocketListener(in: directory)
                    try listener.answer(start) { if path == "/killed" { listener.stop() } }
                    // It is asked whether it is there.
                    if path != "/killed" { try listener.answer(Array(Self.refusal.utf8)) }
                }
                while !OwnerSocket.isThere(in: fixture.directory) { await Task.yield() }
                var request = try fixture.request(path)
                request.policy = .reload
                #expect(try await guest.cache.data(for: request) == fixture.bytes(path), "\(path)")
                try await answered
                #expect(unlink(fixture.directory.appending("OWNER").string) == 0)
            }
            #expect(fixture.sent("/stored") == 100_000)
            #expect(fixture.sent("/killed") == 60_000)
        }
    }

    private static let refusal = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"

    @Test func requestsOfNoGuestAreRefused() async throws {
        try await GuestFixture.run { fixture in
            fixture.origin.serve("/film", .fresh(1000))
            _ = try await fixture.join()
            for (target, lines) in [
                ("/3/http://127.0.0.1/", "TieredCache-Priority: 2\r\n"), ("/", ""), ("/2/", ""),
                ("/2/ftp://127.0.0.1/", "TieredCache-Priority: 2\r\n"),
                ("/2/" + fixture.origin.url("/film"), ""),
                ("/2/" + fixture.origin.url("/film"), "TieredCache-Priority: 9\r\n"),
                (
                    "/2/" + fixture.origin.url("/film"),
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
