import FoundationEssentials
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheAgent

@Suite("The servers of an agent", .tags(.realTime), .timeLimit(.minutes(10)))
struct AgentServerTests {
    private static let version = #"{"id":1,"method":"aria2.getVersion","params":["token:s"]}"#

    private static func port(_ fixture: AgentFixture) throws -> Int {
        let rpc = try #require(try fixture.service.address.rpc)
        return try #require(
            rpc.split(whereSeparator: { $0 == ":" || $0 == "/" }).dropFirst(2).first
                .flatMap { Int($0) }
        )
    }

    private static func run(_ body: (AgentFixture) async throws -> Void) async throws {
        try await AgentFixture.run(
            {
                $0.port = 0
                $0.secret = "s"
            },
            body
        )
    }

    private static func post(_ body: String, host: String, port: Int) async throws -> String {
        let head =
            "POST /jsonrpc HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        return try await IOExecutor(threads: 1, name: "test-client").run {
            let connection = try RawConnection(port: port)
            // A server that has heard enough reads no more.
            _ = try connection.send(Array((head + body).utf8), whileTakenWithin: 2000)
            return String(decoding: try connection.receiveAll(), as: UTF8.self)
        }
    }

    @Test("A port wants the secret, and a name of this machine")
    func secret() async throws {
        try await Self.run { fixture in
            let port = try Self.port(fixture)
            let host = "127.0.0.1:\(port)"
            #expect(try await Self.post(Self.version, host: host, port: port).contains("1.36.0"))
            let wrong = Self.version.replacing("token:s", with: "token:t")
            let refused = try await Self.post(wrong, host: host, port: port)
            #expect(refused.hasPrefix("HTTP/1.1 400") && refused.contains("Unauthorized"))
            for name in ["example.com", "example.com:\(port)", "127.0.0.1", ""] {
                let answer = try await Self.post(Self.version, host: name, port: port)
                #expect(!answer.contains("1.36.0"), "\(name)")
            }
            // Each call of several has its own; the list of methods needs none.
            let multicall =
                #"{"id":1,"method":"system.multicall","params":[[{"methodName":"#
                + #""aria2.getVersion"},{"methodName":"system.listMethods"}]]}"#
            let answers = try await Self.post(multicall, host: host, port: port)
            #expect(answers.contains("Unauthorized") && answers.contains("aria2.addUri"))
        }
    }

    private static func several(_ calls: [String]) -> String {
        #"{"id":1,"method":"system.multicall","params":[["# + calls.joined(separator: ",") + "]]}"
    }

    @Test("A message has one guess, and only who has made the right one is told of downloads")
    func guesses() async throws {
        try await Self.run { fixture in
            let port = try Self.port(fixture)
            let agent = AgentClient(socket: fixture.files.appending("socket"))
            let (guessed, told) = try await IOExecutor(threads: 1, name: "test-client").run {
                let right = #"{"methodName":"aria2.getVersion","params":["token:s"]}"#
                let wrong = right.replacing("token:s", with: "token:t")
                let socket = try RawWebSocket(port: port)
                try socket.send(Self.several([wrong, right]))
                let guessed = try socket.receive()
                var told: [String] = []
                let open = #"{"id":1,"method":"system.listMethods"}"#
                for message in ["[]", Self.several([]), open] {
                    try socket.send(message)
                    told.append(try socket.receive())
                }
                let options: JSONValue = ["pause": "true", "session": "a"]
                let gid = try agent.call("aria2.addUri", [["http://a/x"], options])
                _ = try agent.call("aria2.remove", [gid])
                // What comes next is the answer, and not what the removal told.
                try socket.send(open)
                return (guessed, told + [try socket.receive()])
            }
            #expect(guessed.contains("Unauthorized") && !guessed.contains("1.36.0"))
            #expect(told.count == 4 && told[2] == told[3] && told[3].contains("aria2.addUri"))
        }
    }

    @Test("A port without a secret is refused")
    func noSecret() async throws {
        let change: @Sendable (inout AgentService.Settings) -> Void = { $0.port = 0 }
        let error = await #expect(throws: CacheError.self) {
            try await AgentFixture.run(change, { _ in })
        }
        #expect(error?.code == .invalidArgument)
    }

    @Test("The errors of methods are those of aria2")
    func errors() async throws {
        try await AgentFixture.run { fixture in
            let expected: [(String, [JSONValue], String)] = [
                ("aria2.foo", [], "No such method: aria2.foo"),
                ("aria2.addUri", [], "The parameter at 0 is required but missing."),
                ("aria2.addUri", ["x"], "The parameter at 0 has wrong type."),
                ("aria2.addUri", [[]], "URI is not provided."),
                ("aria2.addUri", [["foo"]], "No URI to download."),
                ("aria2.addUri", [["magnet:?xt=urn:btih:00"]], "No URI to download."),
                ("aria2.addUri", [["http://a/x"], ["gid": "12"]], "No URI to download."),
                (
                    "aria2.addUri", [["http://a/x"], [:], -1],
                    "Position must be greater than or equal to 0."
                ),
                (
                    "aria2.addUri", [["http://a/x"], ["split": "abc"]],
                    "We encountered a problem while processing the option '--split'."
                ),
                ("aria2.tellStatus", [7], "The parameter at 0 has wrong type."),
                ("aria2.tellStatus", ["zz"], "Invalid GID zz"),
                ("aria2.tellStatus", ["ab"], "GID ab is not found"),
                ("aria2.tellWaiting", [0], "The parameter at 1 is required but missing."),
                (
                    "aria2.addTorrent", ["x"],
                    "BitTorrent is not supported here; use addUri with an "
                        + "http or https URL."
                ),
            ]
            let client = AgentClient(socket: fixture.files.appending("socket"))
            for (method, parameters, message) in expected {
                let failure = await #expect(throws: AgentClient.Failure.self) {
                    try await IOExecutor(threads: 1, name: "test-client").run {
                        try client.call(method, parameters)
                    }
                }
                #expect(failure == .refused(RPCError(message)), "\(method)")
            }
        }
    }

    @Test("Options are told as given, lists are cut by offset and number")
    func lists() async throws {
        try await AgentFixture.run { fixture in
            var gids: [JSONValue] = []
            for name in ["/1", "/2", "/3"] {
                gids.append(.string(try await fixture.add(name, ["pause": "true", "x-own": "y"])))
            }
            let told = { (offset: JSONValue, count: JSONValue) in
                try await fixture.call("aria2.tellWaiting", offset, count, ["gid"]).array?
                    .compactMap { $0["gid"] }
            }
            #expect(try await told(0, 2) == Array(gids[..<2]))
            #expect(try await told(-1, 2) == [gids[2], gids[1]])
            #expect(try await told(7, 2) == [])
            #expect(try await told(.integer(.min), .integer(.max)) == [])
            #expect(try await told(.integer(.max), 1) == [])
            #expect(try await fixture.call("aria2.changePosition", gids[2], 0, "POS_SET") == 0)
            #expect(try await told(0, 9) == [gids[2], gids[0], gids[1]])
            let options = try await fixture.call("aria2.getOption", gids[0])
            #expect(options["x-own"] == "y" && options["split"] == "5")
            _ = try await fixture.call(
                "aria2.changeGlobalOption",
                ["max-concurrent-downloads": "3"]
            )
            await fixture.stop()
            try await fixture.start()
            let global = try await fixture.call("aria2.getGlobalOption")
            #expect(global["max-concurrent-downloads"] == "3")
            #expect(try await told(0, 9) == [gids[2], gids[0], gids[1]])
        }
    }

    @Test("What aria2 does otherwise, or has no use for here")
    func otherwise() async throws {
        try await AgentFixture.run { fixture in
            let gid = try await fixture.add("/a", ["pause": "true"])
            #expect(try await fixture.call("aria2.getPeers", .string(gid)) == [])
            #expect(try await fixture.call("aria2.saveSession") == "OK")
            for method in ["aria2.addTorrent", "aria2.addMetalink"] {
                let refusal = try #require(try await fixture.refusal(method, "AA=="))
                #expect(refusal.code == 1 && refusal.message.contains("not supported"))
            }
            let session = { try await fixture.call("aria2.getSessionInfo")["sessionId"]?.string }
            let first = try #require(try await session())
            #expect(first.count == 40)
            #expect(try await session() == first)
            for method in ["aria2.shutdown", "aria2.forceShutdown"] {
                let service = try fixture.service
                #expect(try await fixture.call(method) == "OK")
                await service.untilDone()
                await fixture.stop()
                try await fixture.start()
                #expect(try await session() != first)
                let state = try await fixture.call("aria2.tellStatus", .string(gid), ["status"])
                #expect(state == ["status": "paused"])
            }
        }
    }

    @Test("The documentation has each method as the code has it")
    func documentation() throws {
        let text = try String(
            contentsOf: Self.root.appending(path: "docs/agent-protocol.md"),
            encoding: .utf8
        )
        let start = try #require(text.firstRange(of: "\n## Methods\n")).upperBound
        let end = try #require(text[start...].firstRange(of: "What differs from aria2")).lowerBound
        let rows = text[start..<end].split(separator: "\n").filter { $0.hasPrefix("| `") }
        #expect(rows.map(String.init) == AgentMethod.all.map(\.row))
    }

    private static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    @Test("A long request, a deep one and one that stops half way leave the others alone")
    func hostile() async throws {
        try await Self.run { fixture in
            let port = try Self.port(fixture)
            let host = "127.0.0.1:\(port)"
            let long = String(repeating: " ", count: 10 << 20)
            #expect(try await Self.post(long, host: host, port: port).hasPrefix("HTTP/1.1 413"))
            let deep = String(repeating: "[", count: 1 << 20)
            #expect(try await Self.post(deep, host: host, port: port).contains("-32700"))
            let slow = try RawConnection(port: port)
            try slow.send(
                Array("POST /jsonrpc HTTP/1.1\r\nHost: \(host)\r\nContent-Length: 9\r\n\r\n{".utf8)
            )
            #expect(try await Self.post(Self.version, host: host, port: port).contains("1.36.0"))
            withExtendedLifetime(slow) {}
        }
    }

    @Test("A WebSocket gets answers and notifications, whole or in fragments")
    func webSocket() async throws {
        try await Self.run { fixture in
            fixture.serve("/a", length: 1000)
            let port = try Self.port(fixture)
            let url = fixture.origin.url("/a")
            let add =
                #"{"id":"x","method":"aria2.addUri","params":["token:s",["\#(url)"]]}"#
            let texts = try await IOExecutor(threads: 1, name: "test-client").run {
                let socket = try RawWebSocket(port: port)
                // Nothing is told to a client that has not shown the secret.
                try socket.send(Self.version.replacing("token:s", with: "token:t"))
                let refused = try socket.receive()
                try socket.send(String(Self.version.prefix(20)), isLast: false)
                try socket.sendContinuation(String(Self.version.dropFirst(20)))
                let version = try socket.receive()
                try socket.send(add)
                return [refused, version] + (try (0..<3).map { _ in try socket.receive() })
            }
            #expect(texts[0].contains("Unauthorized") && texts[1].contains("1.36.0"))
            let rest = texts[2...]
            #expect(rest.contains { $0.contains(#""id":"x""#) })
            #expect(rest.contains { $0.contains("aria2.onDownloadStart") })
            #expect(rest.contains { $0.contains("aria2.onDownloadComplete") })
        }
    }

    @Test("A WebSocket with wrong frames is closed, and many of them are served")
    func manyWebSockets() async throws {
        try await Self.run { fixture in
            let port = try Self.port(fixture)
            try await IOExecutor(threads: 1, name: "test-client").run {
                let wrong = try RawWebSocket(port: port)
                try wrong.sendUnmasked()
                #expect(throws: (any Error).self) { while true { _ = try wrong.receive() } }
                let reserved = try RawWebSocket(port: port)
                try reserved.sendReserved()
                #expect(throws: (any Error).self) { while true { _ = try reserved.receive() } }
                let sockets = try (0..<200).map { _ in try RawWebSocket(port: port) }
                for socket in sockets { try socket.send(Self.version) }
                for socket in sockets { #expect(try socket.receive().contains("1.36.0")) }
            }
        }
    }
}
