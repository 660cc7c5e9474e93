import HTTPTypes
import Subprocess
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

/// Requests that hang keep nothing waiting that an origin would answer.
@Suite("Serving while much hangs", .tags(.realTime), .timeLimit(.minutes(10)))
struct ServeHangingTests {
    private static let hanging = 64

    /// Threads for the clients, which block on their sockets.
    private static let threads = IOExecutor(threads: 4, name: "tc-clients")

    /// Connections that have sent something and read nothing.
    private final class Clients: Sendable {
        private let connections = Guarded<[Handover]>([])

        private struct Handover: @unchecked Sendable {
            let connection: RawConnection
        }

        func send(_ requests: [String], to port: Int) async throws {
            let opened = try await threads.run { () throws(RawConnection.Failure) in
                var opened: [Handover] = []
                for request in requests {
                    let connection = try RawConnection(port: port)
                    try connection.send(request)
                    opened.append(Handover(connection: connection))
                }
                return opened
            }
            connections.withLock { $0 += opened }
        }
    }

    /// The first line of the response to a request of its own.
    private static func ask(_ target: String, _ port: Int) async throws -> String {
        try await threads.run { () throws(RawConnection.Failure) in
            let connection = try RawConnection(port: port)
            try connection.send("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n")
            let head = try connection.receiveHead()
            return String(head.prefix { $0 != "\r\n" })
        }
    }

    enum Kind: String, CaseIterable {
        case heads, streams, uploads
    }

    @Test(arguments: Kind.allCases)
    func aMissInFrontOfTheSameOriginIsAnswered(kind: Kind) async throws {
        try await Workplace.with { place in
            let gate = OriginGate()
            defer { gate.open() }
            var requests: [String] = []
            for number in 0..<Self.hanging {
                let path = "/hang/\(number)"
                let behaviour =
                    kind == .streams
                    ? OriginBehaviour.wait(for: gate, after: 1) : .faithful.with { $0.gate = gate }
                place.origin.serve(
                    path,
                    .generated(length: 100_000, cacheControl: "no-store"),
                    OriginScript(behaviour)
                )
                let start = kind == .uploads ? "POST" : "GET"
                let content = kind == .uploads ? "Content-Length: 1000000\r\n\r\nx" : "\r\n"
                requests.append("\(start) \(path) HTTP/1.1\r\nHost: a\r\n\(content)")
            }
            place.origin.serveFresh("/film", length: 1000)
            let arguments = ["--origin", place.origin.url(""), "--origin-timeout", "600"]
            let status = try await place.serve(arguments) { server in
                let clients = Clients()
                try await clients.send(requests, to: server.port)
                await place.origin.waitUntil { log in
                    log.exchanges.count { $0.target.hasPrefix("/hang/") } >= 6
                }
                #expect(try await Self.ask("/film", server.port) == "HTTP/1.1 200 OK")
            }
            #expect(status == .exited(0))
        }
    }

    @Test("Two hosts that answer nothing keep no third one's film waiting")
    func aFilmOfAnotherHostPlays() async throws {
        let silent = try await ScriptedOrigin.start()
        try await Workplace.with { place in
            let gate = OriginGate()
            defer { gate.open() }
            let other = try await ScriptedOrigin.start()
            other.serveFresh("/film", length: 1000)
            let hosts = [silent, place.origin]
            for host in hosts {
                for number in 0..<Self.hanging {
                    host.serve(
                        "/hang/\(number)",
                        .generated(length: 1000),
                        OriginScript(.faithful.with { $0.gate = gate })
                    )
                }
            }
            let status = try await place.serve("--origin-timeout", "600") { server in
                let prefix = try Self.path(of: server.base)
                let clients = Clients()
                for host in hosts {
                    let requests = (0..<Self.hanging).map { number in
                        "GET \(prefix)http/127.0.0.1:\(host.port)/hang/\(number) HTTP/1.1\r\n"
                            + "Host: 127.0.0.1:\(server.port)\r\n\r\n"
                    }
                    try await clients.send(requests, to: server.port)
                    await host.waitUntil { !$0.exchanges.isEmpty }
                }
                // Five of one host, and the last one of the other: all six are taken.
                let film = "\(prefix)http/127.0.0.1:\(other.port)/film"
                #expect(try await Self.ask(film, server.port) == "HTTP/1.1 200 OK")
                let most = hosts.map { $0.log.exchanges.count }.max() ?? 0
                #expect(most <= 5, "one host has had \(most) requests")
            }
            #expect(status == .exited(0))
            await other.stop()
        }
        await silent.stop()
    }

    @Test("A proxied URL that leads to the proxy itself is refused and takes no download")
    func loops() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/film", length: 1000)
            try await place.serve { server in
                let prefix = try Self.path(of: server.base)
                for host in ["127.0.0.1", "localhost", "LOCALHOST"] {
                    let own = "http/\(host):\(server.port)\(prefix)"
                    let nested = "\(prefix)\(own)\(own)http/127.0.0.1:\(place.origin.port)/film"
                    #expect(
                        try await Self.ask(nested, server.port) == "HTTP/1.1 508 Loop Detected"
                    )
                }
                #expect(place.exchanges("/film").isEmpty)
                // What names another host for the way back shows by `Via`.
                let film = "\(prefix)http/127.0.0.1:\(place.origin.port)/film"
                #expect(try await Self.ask(film, server.port) == "HTTP/1.1 200 OK")
                let via = try #require(place.exchanges("/film").first?.fields[.via])
                let answer = try await Self.threads.run { () throws(RawConnection.Failure) in
                    let connection = try RawConnection(port: server.port)
                    try connection.send(
                        "GET \(film)?2 HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n"
                            + "Via: 1.1 other, \(via)\r\n\r\n"
                    )
                    return try connection.receiveHead()
                }
                #expect(answer.hasPrefix("HTTP/1.1 508 "))
            }
        }
    }

    @Test("A reverse proxy in front of itself is refused; one that is led back to says so")
    func reverseLoops() async throws {
        try await Workplace.with { place in
            let chained = try await ScriptedOrigin.start()
            let port = chained.port
            await chained.stop()
            try await place.run(
                "serve",
                "--port",
                "\(port)",
                "--origin",
                "http://localhost:\(port)"
            )
            .expectFailure(64, "itself")
            try await place.serve("--origin", place.origin.url("")) { server in
                place.origin.serveFresh("/a", length: 10)
                #expect(try await Self.ask("/a", server.port) == "HTTP/1.1 200 OK")
                let via = try #require(place.exchanges("/a").first?.fields[.via])
                let answer = try await Self.threads.run { () throws(RawConnection.Failure) in
                    let connection = try RawConnection(port: server.port)
                    try connection.send("GET /b HTTP/1.1\r\nHost: a\r\nVia: \(via)\r\n\r\n")
                    return try connection.receiveHead()
                }
                #expect(answer.hasPrefix("HTTP/1.1 508 "))
                #expect(place.exchanges("/b").isEmpty)
            }
        }
    }

    /// `/TOKEN/` of a base.
    private static func path(of base: String) throws -> String {
        let rest = try #require(base.firstRange(of: "://")).upperBound
        let slash = try #require(base[rest...].firstIndex(of: "/"))
        return String(base[slash...])
    }
}

extension HTTPField.Name {
    /// Which proxies a request has passed (RFC 9110 §7.6.3).
    fileprivate static var via: HTTPField.Name { HTTPField.Name("Via") ?? .connection }
}
