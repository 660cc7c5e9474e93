import Subprocess
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheCLI

/// A server whose descriptors run out does less, and goes on.
@Suite("Serving with few descriptors", .tags(.realTime), .timeLimit(.minutes(10)))
struct ServeDescriptorTests {
    /// One client that asks for something else each time, until it has so many responses.
    ///
    /// Turned away, or cut, it comes again.
    private static func work(_ client: Int, _ port: Int, answers: Int) {
        var answered = 0
        var attempt = 0
        while answered < answers {
            do throws(RawConnection.Failure) {
                let connection = try RawConnection(port: port)
                while answered < answers {
                    attempt += 1
                    try connection.send(
                        "GET /a?\(client)-\(attempt) HTTP/1.1\r\nHost: a\r\n\r\n"
                    )
                    let head = try connection.receiveHead()
                    guard head.hasPrefix("HTTP/1.1 200 ") else { break }
                    guard try connection.receive(exactly: 20_000).count == 20_000 else { break }
                    answered += 1
                }
            } catch {
                continue
            }
        }
    }

    @Test(
        "More clients at work than there are descriptors: some wait, all are served",
        .tags(.long),
        arguments: [(64, 100, 30), (1024, 1100, 3)]
    )
    func manyClients(limit: Int, clients: Int, answers: Int) async throws {
        // The clients are many for this process as well.
        try OpenFileLimit.require()
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 20_000)
            let arguments = ["--origin", place.origin.url("")]
            let status = try await place.serve(arguments, descriptors: limit) { server in
                // Some have come and say nothing.
                let silent = try (0..<clients / 4).map { _ in try RawConnection(port: server.port) }
                let threads = IOExecutor(threads: clients, name: "tc-clients")
                await withTaskGroup(of: Void.self) { group in
                    for client in 0..<clients {
                        group.addTask {
                            await threads.run { Self.work(client, server.port, answers: answers) }
                        }
                    }
                }
                withExtendedLifetime(silent) {}
            }
            #expect(status == .exited(0))
        }
    }
}
