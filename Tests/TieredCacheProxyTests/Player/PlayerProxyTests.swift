import FoundationEssentials
import HTTPTypes
import NIOCore
import NIOPosix
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerProxyTests {
    private let length: Int64 = 300_000

    private func expect(
        _ answer: RawResponse,
        is range: Range<Int64>,
        of resource: OriginResource,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        let body = try #require(resource.generatedBody)
        #expect(
            firstDifference(answer.body, body.bytes(in: range)) == nil,
            sourceLocation: location
        )
    }

    @Test func everyFormOfSingleRangeIs206() async throws {
        try await ProxyFixture.run { fixture in
            let resource = OriginResource.fresh(length)
            fixture.origin.serve("/a.mp4", resource)
            let cases: [(String, Range<Int64>)] = [
                ("0-", 0..<length), ("0-0", 0..<1), ("0-1", 0..<2), ("-5", length - 5..<length),
                ("100-", 100..<length), ("200000-200009", 200_000..<200_010),
                ("299999-", 299_999..<length), ("299990-999999999999", 299_990..<length),
                ("-999999999999", 0..<length),
            ]
            var tags: Set<String?> = []
            for (text, range) in cases {
                let answer = try await fixture.ask("/a.mp4", "Range: bytes=\(text)")
                #expect(answer.status == 206, "\(text)")
                #expect(
                    answer["content-range"]
                        == "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
                )
                #expect(answer["accept-ranges"] == "bytes")
                try expect(answer, is: range, of: resource)
                tags.insert(answer["etag"])
            }
            let whole = try await fixture.ask("/a.mp4")
            #expect(whole.status == 200)
            #expect(whole["content-length"] == "\(length)")
            #expect(whole["content-range"] == nil)
            try expect(whole, is: 0..<length, of: resource)
            tags.insert(whole["etag"])
            tags.insert(try await fixture.ask("/a.mp4", method: "HEAD")["etag"])
            #expect(tags.count == 1 && tags.first??.hasPrefix("\"") == true, "\(tags)")
        }
    }

    @Test func coldRangesTakeOnlyTheirBlocks() async throws {
        try await ProxyFixture.run { fixture in
            let resource = OriginResource.fresh(64 << 20)
            fixture.origin.serve("/a.mp4", resource)
            let answer = try await fixture.ask("/a.mp4", "Range: bytes=50000000-50000099")
            #expect(answer.status == 206)
            #expect(answer["content-range"] == "bytes 50000000-50000099/67108864")
            try expect(answer, is: 50_000_000..<50_000_100, of: resource)
            let sent = fixture.origin.log.exchanges(for: "/a.mp4").map(\.bodyBytesWritten).reduce(
                0,
                +
            )
            #expect(sent <= 65_536)
        }
    }

    @Test(arguments: ["300000-", "300000-300001", "999999999999-"])
    func rangesBeyondTheEndAre416(range: String) async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/a.mp4", .fresh(length))
            let answer = try await fixture.ask("/a.mp4", "Range: bytes=\(range)")
            #expect(answer.status == 416)
            #expect(answer["content-range"] == "bytes */\(length)")
        }
    }

    @Test(arguments: ["bytes=0-1,4-5", "bytes=5-4", "lines=0-1"])
    func otherRangesGetEverything(range: String) async throws {
        try await ProxyFixture.run { fixture in
            let resource = OriginResource.fresh(length)
            fixture.origin.serve("/a.mp4", resource)
            let answer = try await fixture.ask("/a.mp4", "Range: \(range)")
            #expect(answer.status == 200)
            try expect(answer, is: 0..<length, of: resource)
        }
    }

    @Test func headIsAnsweredWhereTheOriginRefusesIt() async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/a.mp4", .fresh(64 << 20))
            let answer = try await fixture.ask("/a.mp4", "Range: bytes=5-", method: "HEAD")
            #expect(answer.status == 200)
            #expect(answer["content-length"] == "67108864")
            #expect(answer["accept-ranges"] == "bytes")
            #expect(answer["content-range"] == nil)
            let exchanges = fixture.origin.log.exchanges(for: "/a.mp4")
            #expect(exchanges.allSatisfy { $0.bodyBytesWritten <= 65_536 })
            // An origin that refuses HEAD is never asked by it.
            #expect(exchanges.allSatisfy { $0.method == "GET" })
        }
    }

    @Test func emptyFilesAreAnswered() async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/empty.mp4", .fresh(0))
            #expect(try await fixture.ask("/empty.mp4", method: "HEAD")["content-length"] == "0")
            let answer = try await fixture.ask("/empty.mp4")
            #expect(answer.status == 200)
            #expect(answer["content-length"] == "0")
        }
    }

    @Test func warmAnswersAskTheOriginForNothing() async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/a.mp4", .fresh(length))
            _ = try await fixture.ask("/a.mp4")
            let before = fixture.requests("/a.mp4")
            for field in ["X: y", "Range: bytes=7-", "Range: bytes=-7", "Cache-Control: no-cache"] {
                #expect(try await fixture.ask("/a.mp4", field).status < 300)
            }
            #expect(try await fixture.ask("/a.mp4", method: "HEAD").status == 200)
            #expect(fixture.requests("/a.mp4") == before)
        }
    }

    @Test func conditionsAreAboutTheProxysTag() async throws {
        try await ProxyFixture.run { fixture in
            let resource = OriginResource.fresh(length)
            fixture.origin.serve("/a.mp4", resource)
            let tag = try #require(try await fixture.ask("/a.mp4")["etag"])
            let same = try await fixture.ask("/a.mp4", "If-None-Match: \(tag)")
            #expect(same.status == 304)
            #expect(same["etag"] == tag)
            #expect(try await fixture.ask("/a.mp4", "If-Match: \"x\"").status == 412)
            #expect(try await fixture.ask("/a.mp4", "If-Match: \(tag)").status == 200)
            let part = try await fixture.ask("/a.mp4", "Range: bytes=5-9", "If-Range: \(tag)")
            #expect(part.status == 206)
            let whole = try await fixture.ask("/a.mp4", "Range: bytes=5-9", "If-Range: \"x\"")
            #expect(whole.status == 200)
            try expect(whole, is: 0..<length, of: resource)
        }
    }

    @Test func conditionsComeBeforeARangeBeyondTheEnd() async throws {
        try await ProxyFixture.run { fixture in
            let resource = OriginResource.fresh(length)
            fixture.origin.serve("/a.mp4", resource)
            let beyond = "Range: bytes=\(length)-"
            let refused = try await fixture.ask("/a.mp4", beyond)
            #expect(refused.status == 416)
            let tag = try #require(try await fixture.ask("/a.mp4")["etag"])
            #expect(try await fixture.ask("/a.mp4", beyond, "If-Range: \(tag)").status == 416)
            #expect(try await fixture.ask("/a.mp4", beyond, "If-Match: \"x\"").status == 412)
            let same = try await fixture.ask("/a.mp4", beyond, "If-None-Match: \(tag)")
            #expect(same.status == 304)
            // What the player has is of an older, longer file: it is to have the new one.
            let whole = try await fixture.ask("/a.mp4", beyond, "If-Range: \"older\"")
            #expect(whole.status == 200)
            try expect(whole, is: 0..<length, of: resource)
        }
    }

    @Test func lengthsThatNobodyKnowsAreFound() async throws {
        try await ProxyFixture.run { fixture in
            var resource = OriginResource.fresh(length)
            resource.framing = .chunked
            // The Content-Range of a 206 would tell the length.
            resource.acceptsRanges = false
            let gate = OriginGate()
            let script = OriginScript(.wait(for: gate, after: 100_000))
            fixture.origin.serve("/a.mp4", resource, script)
            fixture.origin.serve("/b.mp4", resource)
            // The end comes after the head has been given.
            let first = try await fixture.ask("/a.mp4", "Range: bytes=0-") { gate.open() }
            #expect(first.status == 200)
            #expect(first["content-range"] == nil)
            try expect(first, is: 0..<length, of: resource)
            // Enforced by now: the length is known.
            let second = try await fixture.ask("/a.mp4", "Range: bytes=0-")
            #expect(second.status == 206)
            // A seek waits for the length.
            for range in ["200000-200009", "-10"] {
                let answer = try await fixture.ask("/b.mp4", "Range: bytes=\(range)")
                #expect(answer.status == 206)
                #expect(answer["content-range"]?.hasSuffix("/\(length)") == true)
                #expect(answer.body.count == 10)
            }
        }
    }

    @Test func originsWithoutRangesAreSeekable() async throws {
        try await ProxyFixture.run { fixture in
            var resource = OriginResource.fresh(length)
            resource.acceptsRanges = false
            fixture.origin.serve("/a.mp4", resource)
            let answer = try await fixture.ask("/a.mp4", "Range: bytes=200000-200009")
            #expect(answer.status == 206)
            #expect(answer["accept-ranges"] == "bytes")
            try expect(answer, is: 200_000..<200_010, of: resource)
        }
    }

    @Test func tagsSurviveARestartWithPortAndToken() async throws {
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("tieredcache-proxy")
        var resource = OriginResource.fresh(length)
        resource.entityTag = .none
        origin.serve("/a.mp4", resource)
        let first = try await ProxyFixture(origin: origin, files: files)
        let tag = try #require(try await first.ask("/a.mp4", "Range: bytes=0-")["etag"])
        let base = first.proxy.base
        await first.stop()
        let second = try await ProxyFixture(origin: origin, files: files)
        #expect(second.proxy.base == base)
        #expect(try await second.ask("/a.mp4", "Range: bytes=5-9")["etag"] == tag)
        await second.stop()
        await origin.stop()
    }

    @Test func changesGetAnotherTag() async throws {
        try await ProxyFixture.run { fixture in
            var resource = OriginResource.generated(
                length: length,
                seed: 3,
                cacheControl: "no-cache"
            )
            resource.entityTag = .none
            fixture.origin.serve("/a.mp4", resource)
            let old = try await fixture.ask("/a.mp4")
            fixture.origin.update("/a.mp4") { $0.version += 1 }
            let new = try await fixture.ask("/a.mp4")
            #expect(old["etag"] != new["etag"])
            #expect(old.body != new.body)
        }
    }

    @Test func errorsOfTheOriginAreRelayed() async throws {
        try await ProxyFixture.run { fixture in
            for range in ["0-", "5-"] {
                let answer = try await fixture.ask("/none.mp4", "Range: bytes=\(range)")
                #expect(answer.status == 404)
            }
        }
    }

    @Test func deadOriginsAreBadGateways() async throws {
        try await ProxyFixture.run {
            $0.originTimeout = .milliseconds(50)
        } _: { fixture in
            fixture.origin.serve("/a.mp4", OriginScript(.dropped()))
            let status = try await fixture.ask("/a.mp4").status
            #expect(status == 502 || status == 504)
        }
    }

    @Test func silentOriginsTimeOut() async throws {
        try await ProxyFixture.run {
            $0.originTimeout = .milliseconds(50)
        } _: { fixture in
            let gate = OriginGate()
            fixture.origin.serve(
                "/a.mp4",
                .fresh(length),
                OriginScript(OriginBehaviour.faithful.with { $0.gate = gate })
            )
            let answer = try await fixture.ask("/a.mp4")
            #expect(answer.status == 504)
            gate.open()
        }
    }

    @Test func answersGoOnWhereTheOriginFailed() async throws {
        try await ProxyFixture.run { fixture in
            let resource = OriginResource.fresh(length)
            fixture.origin.serve("/a.mp4", resource, .first(3, .cut(after: 70_000)))
            let answer = try await fixture.ask("/a.mp4")
            #expect(answer.status == 200)
            try expect(answer, is: 0..<length, of: resource)
        }
    }

    @Test(arguments: [OriginBehaviour.dropped(), .status(503)])
    func whatWasAnsweredBeforeNeverGetsAnError(behaviour: OriginBehaviour) async throws {
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("tieredcache-proxy")
        origin.serve("/a.mp4", .fresh(length))
        let first = try await ProxyFixture(origin: origin, files: files)
        // More than a block: its end is read from memory, and a restart knows only what is sealed.
        #expect(try await first.ask("/a.mp4", "Range: bytes=0-70000").status == 206)
        await first.stop()
        origin.serve("/a.mp4", .fresh(length), OriginScript(behaviour))
        let second = try await ProxyFixture(origin: origin, files: files) {
            $0.originTimeout = .milliseconds(50)
            $0.stallTimeout = .milliseconds(50)
        }
        let (port, target) = (second.proxy.port, try second.target("/a.mp4"))
        let received = try await onThread {
            let connection = try RawConnection(port: port)
            try connection.send(
                "GET \(target) HTTP/1.1\r\nHost: localhost:\(port)\r\n"
                    + "Range: bytes=200000-\r\n\r\n"
            )
            return try connection.receiveAll()
        }
        let text = String(decoding: received.prefix(100), as: UTF8.self)
        #expect(!text.hasPrefix("HTTP/1.1 5"), "\(text)")
        await second.stop()
        await origin.stop()
    }

    @Test func nobodyElseOnTheNetworkCanConnect() async throws {
        try await ProxyFixture.run { fixture in
            let client = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            let channel = try await client.connect(host: "127.0.0.1", port: fixture.proxy.port)
                .get()
            try await channel.close().get()
            // Another address of the same machine.
            await #expect(throws: (any Error).self) {
                let other = try await client.connect(
                    host: "127.0.0.2",
                    port: fixture.proxy.port
                ).get()
                try await other.close().get()
            }
        }
    }

    @Test func whatIsReadFromTheCacheIsCounted() async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/a.mp4", .fresh(2 << 20))
            let part = try await fixture.ask("/a.mp4", "Range: bytes=0-1048575")
            #expect(fixture.cache.statistics.bytesFromCache == 0)
            // Half of it is held.
            _ = try await fixture.ask("/a.mp4")
            #expect(await fixture.bytesFromCache(1 << 20))
            // All of it is; with and without a condition, which is answered in another way.
            let tag = try #require(part["etag"])
            for count: Int64 in 1...3 {
                let answer = try await fixture.ask("/a.mp4", "If-Match: \(tag)")
                #expect(answer.body.count == 2 << 20)
                #expect(await fixture.bytesFromCache(1 << 20 + count << 21))
            }
            // Counted at the end of each transfer, which its reader does not wait for.
            while fixture.cache.statistics.bytesFromOrigin < 2 << 20 { await Task.yield() }
            #expect(fixture.cache.statistics.bytesFromOrigin == 2 << 20)
        }
    }

    @Test func whatIsSmallIsCountedOnce() async throws {
        try await ProxyFixture.run { fixture in
            var all: Int64 = 0
            for length: Int64 in [100_000, 400_000] {
                let path = "/\(length).mp4"
                fixture.origin.serve(path, .fresh(length))
                let tag = try #require(try await fixture.ask(path)["etag"])
                // From disk, from which it is taken into memory, and from there.
                for _ in 1...3 {
                    let answer = try await fixture.ask(path, "If-Match: \(tag)")
                    #expect(answer.body.count == Int(length))
                    all += length
                    #expect(await fixture.bytesFromCache(all), "\(length)")
                }
            }
            #expect(fixture.cache.statistics.bytesFromMemory > 0)
        }
    }

    @Test func downloadsEndWhenTheLastPlayerHasLeft() async throws {
        try await ProxyFixture.run { fixture in
            let gate = OriginGate()
            fixture.origin.serve(
                "/a.mp4",
                .fresh(64 << 20),
                OriginScript(.wait(for: gate, after: 200_000))
            )
            let (port, target) = (fixture.proxy.port, try fixture.target("/a.mp4"))
            try await onThread {
                let connection = try RawConnection(port: port)
                try connection.send("GET \(target) HTTP/1.1\r\nHost: localhost:\(port)\r\n\r\n")
                _ = try connection.receiveHead()
                #expect(try connection.receive(exactly: 100_000).count == 100_000)
            }
            // The proxy's connection to the origin is closed, though the origin never ends.
            await fixture.origin.waitUntil { $0.openConnections == 0 }
            gate.open()
        }
    }
}
