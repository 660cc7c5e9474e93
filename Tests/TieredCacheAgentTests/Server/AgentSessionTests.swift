import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheAgent

@Suite("Sessions over the servers of an agent", .tags(.realTime), .timeLimit(.minutes(10)))
struct AgentSessionTests {
    /// Runs `body` with an agent that has a port, whose secret is `s`.
    private static func run(_ body: (AgentFixture) async throws -> Void) async throws {
        try await AgentFixture.run(
            {
                $0.port = 0
                $0.secret = "s"
            },
            body
        )
    }

    private static func port(_ fixture: AgentFixture) throws -> Int {
        let rpc = try #require(try fixture.service.address.rpc)
        let port = rpc.split { ":/".contains($0) }.dropFirst(2).first.flatMap { Int($0) }
        return try #require(port)
    }

    private static func call(_ method: String, _ rest: String = "") -> String {
        #"{"id":"x","method":"\#(method)","params":["token:s"\#(rest)]}"#
    }

    /// What a client is told that attaches: the answer, and all up to the end of what waits.
    private static func attach(_ socket: RawWebSocket, _ name: String) throws -> [String] {
        try socket.send(call("tieredcache.attach", #","\#(name)""#))
        var texts: [String] = []
        repeat { texts.append(try socket.receive()) } while !(texts.last ?? "").contains("Drained")
        return texts
    }

    @Test("Each attach tells all that is not acknowledged once, in order, and then what comes")
    func results() async throws {
        try await Self.run { fixture in
            var gids: [String] = []
            for name in ["/1", "/2", "/3"] {
                fixture.serve(name, length: 1000)
                let status = try await fixture.download(name, ["session": "app"])
                gids.append(try #require(status["gid"]?.string))
            }
            _ = try await fixture.download("/missing", ["session": "other"], until: .error)
            for _ in 0..<2 {
                let port = try Self.port(fixture)
                let texts = try await IOExecutor(threads: 1, name: "test-client").run {
                    try Self.attach(try RawWebSocket(port: port), "app")
                }
                #expect(texts.count == 5)
                #expect(texts[0].contains(#""session":"app""#) && !texts[0].contains("error"))
                for (text, gid) in zip(texts[1...], gids) {
                    #expect(text.contains("aria2.onDownloadComplete") && text.contains(gid))
                }
                await fixture.stop()
                try await fixture.start()
            }
        }
    }

    @Test("An attached client sees its own downloads alone, and what it adds belongs to it")
    func apart() async throws {
        try await Self.run { fixture in
            fixture.serve("/mine", length: 1000)
            let other = try await fixture.add("/other", ["session": "b", "pause": "true"])
            let url = fixture.origin.url("/mine")
            let port = try Self.port(fixture)
            let (added, told) = try await IOExecutor(threads: 1, name: "test-client").run {
                let socket = try RawWebSocket(port: port)
                _ = try Self.attach(socket, "a")
                let ask = { (text: String) in
                    try socket.send(text)
                    while true {
                        let answer = try socket.receive()
                        if answer.contains(#""id":"x""#) { return answer }
                    }
                }
                let added = try ask(
                    Self.call("aria2.addUri", #",["\#(url)"],{"pause":"true"}"#)
                )
                return (
                    added,
                    [
                        try ask(Self.call("aria2.tellWaiting", #",0,9,["gid"]"#)),
                        try ask(Self.call("aria2.tellStatus", #","\#(other)""#)),
                        try ask(Self.call("aria2.remove", #","\#(other)""#)),
                        try ask(Self.call("aria2.addUri", #",["\#(url)"],{"session":"b"}"#)),
                        try ask(Self.call("tieredcache.acknowledge", #","b""#)),
                    ]
                )
            }
            #expect(!told[0].contains(other) && told[0].contains("gid"))
            #expect(told[1].contains("is not found") && told[2].contains("is not found"))
            #expect(told[3].contains("'--session'") && told[4].contains("attached to session a"))
            let all = try await fixture.call("aria2.tellWaiting", 0, 9, ["gid"])
            #expect(all.array?.count == 2 && added.contains("result"))
        }
    }

    @Test("An attach that is refused leaves a client with the session that it had")
    func refused() async throws {
        try await Self.run { fixture in
            let other = try await fixture.add("/other", ["session": "b", "pause": "true"])
            for _ in 0..<16 { _ = try await fixture.service.agent.attach("b", command: nil) }
            let port = try Self.port(fixture)
            let (refusal, told) = try await IOExecutor(threads: 1, name: "test-client").run {
                let socket = try RawWebSocket(port: port)
                _ = try Self.attach(socket, "a")
                try socket.send(Self.call("tieredcache.attach", #","b""#))
                let refusal = try socket.receive()
                try socket.send(Self.call("aria2.tellWaiting", #",0,9,["gid"]"#))
                return (refusal, try socket.receive())
            }
            #expect(refusal.contains("At most 16 connections"))
            #expect(told.contains("result") && !told.contains(other))
        }
    }

    @Test("A client that knows the secret cannot have programs run")
    func secret() async throws {
        try await Self.run { fixture in
            let port = try Self.port(fixture)
            let answer = try await IOExecutor(threads: 1, name: "test-client").run {
                let socket = try RawWebSocket(port: port)
                try socket.send(
                    Self.call("tieredcache.attach", #","a",{"on-complete":["/bin/true"]}"#)
                )
                return try socket.receive()
            }
            #expect(answer.contains("at the socket alone"))
            for (parameters, words) in [
                (["a b"], "A session is called"), (["a", ["on-complete": "x"]], "a list of texts"),
                (["a", ["on-complete": [1]]], "a list of texts"),
                (["a", ["other": "x"]], "no other option"),
            ] as [([JSONValue], String)] {
                let client = AgentClient(socket: fixture.files.appending("socket"))
                let failure = await #expect(throws: AgentClient.Failure.self) {
                    try await IOExecutor(threads: 1, name: "test-client").run {
                        try client.call("tieredcache.attach", parameters)
                    }
                }
                guard case .refused(let error) = failure else { continue }
                #expect(error.message.contains(words))
            }
        }
    }

    @Test("Acknowledged results are gone, also from the next process")
    func acknowledged() async throws {
        try await Self.run { fixture in
            fixture.serve("/1", length: 1000)
            let status = try await fixture.download("/1", ["session": "app"])
            let gid = try #require(status["gid"])
            let attached = try await fixture.call("tieredcache.attach", "app")
            #expect(attached["results"] == [gid] && attached["unfinished"] == [])
            let refused = try await fixture.refusal("aria2.removeDownloadResult", gid)
            #expect(refused?.message.contains("session app") == true)
            #expect(try await fixture.call("tieredcache.acknowledge", "app", [gid]) == 1)
            #expect(try await fixture.call("tieredcache.acknowledge", "app", [gid]) == 0)
            await fixture.stop()
            try await fixture.start()
            let again = try await fixture.call("tieredcache.attach", "app")
            #expect(again["results"] == [])
        }
    }
}
