import Subprocess
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The forwarder that the public cache tests ask, see docs/http-conformance.md.
@Suite("The clients with a cache as a proxy", .tags(.realTime), .timeLimit(.minutes(2)))
struct ClientForwarderTests {
    @Test(
        "A fresh response is reused, a stale one is confirmed, a change is passed on",
        arguments: ["--foundation", "--http-client"]
    )
    func exchanges(kind: String) async throws {
        let origin = try await ScriptedOrigin.start()
        origin.serve("/fresh", .text("fresh", cacheControl: "max-age=60"))
        origin.serve("/stale", .text("stale", cacheControl: "no-cache"))
        try await Self.forwarding(kind, to: origin) { port in
            for path in ["/fresh", "/fresh", "/stale", "/stale"] {
                #expect(try Self.ask("GET", path, port) == path.dropFirst(), "\(path)")
            }
            #expect(origin.log.exchanges(for: "/fresh").map(\.status) == [200])
            #expect(origin.log.exchanges(for: "/stale").map(\.status) == [200, 304])
            _ = try Self.ask("DELETE", "/fresh", port)
            #expect(try Self.ask("GET", "/fresh", port) == "fresh")
            let methods = origin.log.exchanges(for: "/fresh").map(\.method)
            #expect(methods == ["GET", "DELETE", "GET"])
        }
        await origin.stop()
    }

    /// The body of the response.
    private static func ask(_ method: String, _ path: String, _ port: Int) throws -> String {
        let connection = try RawConnection(port: port)
        try connection.send("\(method) \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
        let head = try connection.receiveHead()
        #expect(head.hasPrefix("HTTP/1.1 200 "), "\(head)")
        return String(decoding: try connection.receive(exactly: 5), as: UTF8.self)
    }

    /// Runs the forwarder meanwhile.
    private static func forwarding(
        _ kind: String,
        to origin: ScriptedOrigin,
        _ body: (Int) throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory("client-forwarder")
        let program = try Workplace.program.removingLastComponent().appending("ClientForwarder")
        _ = try await Subprocess.run(
            .path(program),
            arguments: [kind, origin.url(""), directory.path.string],
            input: .none,
            output: .sequence,
            error: .string(limit: 1 << 20)
        ) { execution in
            defer { kill(execution.processIdentifier.value, SIGTERM) }
            for try await line in execution.standardOutput.strings() {
                let port = line.filter { $0 != "\n" }.split(separator: ":").last.flatMap { Int($0) }
                return try body(try #require(port))
            }
        }
    }
}
