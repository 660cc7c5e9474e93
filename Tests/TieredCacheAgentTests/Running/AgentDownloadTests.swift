import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheAgent

@Suite("Downloads of an agent", .tags(.realTime), .timeLimit(.minutes(10)))
struct AgentDownloadTests {
    private static let length: Int64 = 2_000_000

    @Test("The file appears complete, and every answer says so")
    func complete() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/film.mp4", length: Self.length)
            let status = try await fixture.download("/film.mp4")
            #expect(status["status"] == "complete" && status["errorCode"] == "0")
            #expect(status["completedLength"] == "2000000" && status["totalLength"] == "2000000")
            #expect(status["bitfield"] == "c0" && status["numPieces"] == "2")
            let path = fixture.files.appending("out").appending("film.mp4").string
            #expect(status["files"]?.array?.first?["path"] == .string(path))
            #expect(try fixture.file("film.mp4", equals: "/film.mp4"))
            #expect(fixture.names == ["film.mp4"])
            let stat = try await fixture.call("aria2.getGlobalStat")
            #expect(stat["numStopped"] == "1" && stat["numActive"] == "0")
            #expect(try await fixture.call("aria2.tellStopped", 0, 10, ["gid"]).array?.count == 1)
            // Nothing of it stays pinned.
            let request = try CacheRequest(fixture.origin.url("/film.mp4"))
            #expect(try await fixture.service.agent.cache.entry(for: request)?.isPinned == false)
        }
    }

    @Test("While it runs there is no file; paused and in a later process it goes on from its bytes")
    func pause() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: Self.length, .first(1, .stall(after: 1_000_000)))
            let gid = try await fixture.add("/a")
            // What the origin has written may be in the socket yet.
            while try await fixture.completedLength(of: gid) < 1_000_000 { await Task.yield() }
            #expect(fixture.names.isEmpty)
            #expect(try await fixture.call("aria2.tellActive", ["gid"]) == [["gid": .string(gid)]])
            _ = try await fixture.call("aria2.pause", .string(gid))
            let paused = try await fixture.call("aria2.tellStatus", .string(gid))
            #expect(paused["status"] == "paused")
            let stored = try #require(paused["completedLength"]?.string.flatMap { Int64($0) })
            await fixture.stop()
            try await fixture.start()
            let again = try await fixture.call("aria2.tellStatus", .string(gid))
            #expect(again["status"] == "paused")
            #expect(again["completedLength"] == paused["completedLength"])
            try await fixture.until(.complete, of: gid) {
                _ = try await fixture.call("aria2.unpause", .string(gid))
            }
            #expect(try fixture.file("a", equals: "/a"))
            let ranges = fixture.origin.log.exchanges(for: "/a").map { $0.fields[.range] }
            // From the block on that had not come whole.
            let start = stored / 65_536 * 65_536
            #expect(ranges == [nil, "bytes=\(start)-1999999"])
        }
    }

    @Test("What ran when the process ended goes on by itself in the next one")
    func restart() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: Self.length, .first(1, .stall(after: 1_000_000)))
            let gid = try await fixture.add("/a")
            await fixture.origin.waitUntil { $0.bodyBytesWritten >= 1_000_000 }
            await fixture.stop()
            try await fixture.start()
            while try fixture.service.agent.isBusy { await Task.yield() }
            let status = try await fixture.call("aria2.tellStatus", .string(gid), ["status"])
            #expect(status == ["status": "complete"])
            #expect(try fixture.file("a", equals: "/a"))
        }
    }

    @Test("An origin that changes under a paused download gives a file of one version")
    func change() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: Self.length, .first(1, .stall(after: 1_000_000)))
            let gid = try await fixture.add("/a")
            await fixture.origin.waitUntil { $0.bodyBytesWritten >= 1_000_000 }
            _ = try await fixture.call("aria2.pause", .string(gid))
            fixture.origin.update("/a") { $0.version = 2 }
            try await fixture.until(.complete, of: gid) {
                _ = try await fixture.call("aria2.unpause", .string(gid))
            }
            #expect(try fixture.file("a", equals: "/a", version: 2))
        }
    }

    @Test("Of what waits a later process says how much has come, also after a kill")
    func killed() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: Self.length, .first(1, .stall(after: 1_000_000)))
            let gid = try await fixture.add("/a")
            // What the origin has written may be in the socket yet.
            while try await fixture.completedLength(of: gid) < 1_000_000 { await Task.yield() }
            _ = try await fixture.call("aria2.pause", .string(gid))
            let before = try await fixture.call("aria2.tellStatus", .string(gid))
            // As it was written when it was added.
            let agent = try fixture.service.agent
            let number = try agent.table.gid(gid)
            agent.update { table in
                table.live[number]?.record.completed = 0
                table.live[number]?.record.total = nil
                table.live[number]?.record.path = ""
            }
            await fixture.stop()
            try await fixture.start()
            let after = try await fixture.call("aria2.tellStatus", .string(gid))
            for key in ["totalLength", "pieceLength"] {
                #expect(after[key] == before[key], "\(key)")
            }
            let path = fixture.files.appending("out").appending("a").string
            #expect(after["files"]?.array?.first?["path"] == .string(path))
            // What had come of the last block was in memory alone.
            #expect(after["completedLength"] == "983040")
        }
    }

    @Test("What plays has no part in the rate of all downloads", .timeLimit(.minutes(1)))
    func playing() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: Self.length)
            fixture.serve("/film", length: Self.length)
            let slow: JSONValue = ["max-overall-download-limit": "1"]
            _ = try await fixture.call("aria2.changeGlobalOption", slow)
            let gid = try await fixture.add("/a")
            await fixture.origin.waitUntil { $0.bodyBytesWritten(for: "/a") > 0 }
            let request = try CacheRequest(fixture.origin.url("/film"))
            let film = try await fixture.service.agent.cache.data(for: request)
            #expect(film.count == Self.length)
            let status = try await fixture.call("aria2.tellStatus", .string(gid), ["status"])
            #expect(status == ["status": "active"])
        }
    }

    @Test("Secrets of the agent's options and of changed URLs are not written")
    func lateSecrets() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: 1000)
            let options: JSONValue = [
                "header": ["Authorization: hidden1"], "http-passwd": "hidden2", "out": "same",
                "checksum": "md5=d41d8cd98f00b204e9800998ecf8427e", "user-agent": "kept",
            ]
            _ = try await fixture.call("aria2.changeGlobalOption", options)
            let global = try await fixture.call("aria2.getGlobalOption")
            #expect(global["user-agent"] == "kept" && global["out"] == nil)
            #expect(global["checksum"] == nil)
            let gid = try await fixture.add("/b", ["pause": "true"])
            let url = fixture.origin.url("/a")
            let secret = url.replacing("http://", with: "http://u:hidden3@")
            let changed = try await fixture.call(
                "aria2.changeUri",
                .string(gid),
                1,
                [.string(fixture.origin.url("/b"))],
                [.string(secret)]
            )
            #expect(changed == [1, 1])
            try await fixture.until(.complete, of: gid) {
                _ = try await fixture.call("aria2.unpause", .string(gid))
            }
            let asked = try #require(fixture.origin.log.exchanges(for: "/a").first)
            #expect(asked.fields[.authorization] == "Basic dTpoaWRkZW4z")
            await fixture.stop()
            let journal = String(
                decoding: try fixture.files.bytes("cache/agent/journal"),
                as: UTF8.self
            )
            #expect(journal.contains("kept"))
            #expect(!journal.contains("hidden"))
        }
    }

    @Test("A file that is there stays, is replaced, or is an error, as the options say")
    func existing() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a.txt", length: 1000)
            try fixture.files.makeDirectory("out")
            try fixture.files.write("mine", to: "out/a.txt")
            _ = try await fixture.download("/a.txt")
            _ = try await fixture.download("/a.txt")
            #expect(fixture.names == ["a.1.txt", "a.2.txt", "a.txt"])
            #expect(try fixture.files.read("out/a.txt") == "mine")
            let refused = try await fixture.download(
                "/a.txt",
                ["auto-file-renaming": "false"],
                until: .error
            )
            #expect(refused["errorCode"] == "13")
            _ = try await fixture.download("/a.txt", ["allow-overwrite": "true"])
            #expect(try fixture.file("a.txt", equals: "/a.txt"))
            #expect(fixture.names == ["a.1.txt", "a.2.txt", "a.txt"])
        }
    }

    @Test("A crash between the name of a file and its record makes no second file")
    func crashBehindName() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: 1000)
            let status = try await fixture.download("/a")
            let agent = try fixture.service.agent
            let gid = try agent.table.gid(try #require(status["gid"]?.string))
            var record = try #require(try await agent.results([gid]).first)
            let path = fixture.files.appending("out").appending("a")
            let file = try #require(FinishedFile.identity(of: path))
            record.state = .waiting
            record.delivery = DownloadRecord.Delivery(
                path: path.string,
                device: file.device,
                file: file.file
            )
            try await agent.perform { [record] (_, _) throws(RPCError) in ((), [.save(record)]) }
            await fixture.stop()
            try await fixture.start()
            let table = { try fixture.service.agent.table }
            while try table().isBusy { await Task.yield() }
            #expect(try table().stopped.contains(gid))
            #expect(fixture.names == ["a"])
        }
    }

    @Test("The digest of the caller decides, and a mirror is used where the first URL fails")
    func digestAndMirror() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: 1000)
            let wrong = "sha-256=" + String(repeating: "0", count: 64)
            let failed = try await fixture.download(
                "/a",
                ["checksum": .string(wrong)],
                until: .error
            )
            #expect(failed["errorCode"] == "32")
            #expect(fixture.names.isEmpty)
            let gid = try await fixture.call(
                "aria2.addUri",
                [.string(fixture.origin.url("/lost")), .string(fixture.origin.url("/a"))],
                ["out": "b", "pause": "true"]
            )
            let text = try #require(gid.string)
            try await fixture.until(.complete, of: text) {
                _ = try await fixture.call("aria2.unpause", gid)
            }
            #expect(try fixture.file("b", equals: "/a"))
        }
    }

    @Test("Failures have aria2's numbers, and a removed one its result")
    func failures() async throws {
        try await AgentFixture.run { fixture in
            fixture.origin.serve("/secret", OriginScript(.status(403)))
            #expect(try await fixture.download("/lost", until: .error)["errorCode"] == "3")
            #expect(try await fixture.download("/secret", until: .error)["errorCode"] == "24")
            fixture.serve("/a", length: Self.length, .first(1, .stall(after: 1_000_000)))
            let gid = try await fixture.add("/a")
            await fixture.origin.waitUntil { $0.bodyBytesWritten >= 1_000_000 }
            _ = try await fixture.call("aria2.remove", .string(gid))
            let status = try await fixture.call("aria2.tellStatus", .string(gid))
            #expect(status["status"] == "removed" && status["errorCode"] == "31")
            #expect(try await fixture.call("aria2.purgeDownloadResult") == "OK")
            #expect(
                try await fixture.refusal("aria2.tellStatus", .string(gid))?.message
                    == "GID \(gid) is not found"
            )
        }
    }

    @Test("A range is stored when fill answers, once, and a guest reads it without the origin")
    func fill() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: Self.length)
            let url = JSONValue.string(fixture.origin.url("/a"))
            let range: JSONValue = [[500_000, 700_000]]
            let filled = try await fixture.call("tieredcache.fill", url, 500_000, 200_000)
            #expect(filled["stored"] == range)
            #expect(filled["length"] == .integer(Self.length))
            let asked = fixture.origin.log.exchanges(for: "/a").count
            #expect(
                try await fixture.call("tieredcache.fill", url, 500_000, 200_000)["stored"] == range
            )
            #expect(fixture.origin.log.exchanges(for: "/a").count == asked)
            let wrongs: [[JSONValue]] = [[url, -1], [url, 0, 0], ["ftp://a/b"], [url, "0"]]
            for wrong in wrongs {
                let refusal = try await fixture.refusal("tieredcache.fill", list: wrong)
                #expect(refusal != nil, "\(wrong)")
            }
        }
    }

    @Test("Secrets are sent, never written, and asked for again after a restart")
    func secrets() async throws {
        try await AgentFixture.run { fixture in
            fixture.serve("/a", length: Self.length, .first(1, .stall(after: 1_000_000)))
            let gid = try await fixture.add(
                "/a",
                ["header": ["Authorization: Bearer very-secret"], "http-passwd": "hidden-one"]
            )
            await fixture.origin.waitUntil { $0.bodyBytesWritten >= 1_000_000 }
            let sent = fixture.origin.log.exchanges(for: "/a").first?.fields[.authorization]
            #expect(sent == "Bearer very-secret")
            await fixture.stop()
            let journal = String(
                decoding: try fixture.files.bytes("cache/agent/journal"),
                as: UTF8.self
            )
            #expect(!journal.contains("very-secret") && !journal.contains("hidden-one"))
            try await fixture.start()
            let status = try await fixture.call("aria2.tellStatus", .string(gid), ["status"])
            #expect(status == ["status": "paused"])
            let shown = try await fixture.call("tieredcache.show", .string(gid))
            #expect(shown["lacksCredentials"] == true)
        }
    }
}
