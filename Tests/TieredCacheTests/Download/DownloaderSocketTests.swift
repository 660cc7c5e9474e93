#if HTTPClient
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite("Downloader over sockets", .tags(.realTime), .timeLimit(.minutes(10)))
struct DownloaderSocketTests {
    @Test(
        "A redirect, a cut and the rest: two connections, no byte twice"
    )
    func wholeStory() async throws {
        let bytes = ScriptedOriginModel.bytes(version: 1, range: 0..<200_000)
        let peer = RawPeer { connection in
            while let head = connection.readHead() {
                if head.hasPrefix("GET /start ") {
                    connection.write(
                        "HTTP/1.1 302 Found\r\nLocation: /file\r\nContent-Length: 4\r\n\r\ngone"
                    )
                } else if !head.lowercased().contains("range: bytes=") {
                    connection.write(
                        "HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 200000\r\n\r\n"
                    )
                    connection.write(Array(bytes[..<70_000]))
                    return
                } else {
                    connection.write(
                        "HTTP/1.1 206 Partial Content\r\nETag: \"v\"\r\nContent-Length: 130000\r\n"
                            + "Content-Range: bytes 70000-199999/200000\r\n\r\n"
                    )
                    connection.write(Array(bytes[70_000...]))
                }
            }
        }
        let transport = NIOTransport()
        let sink = RecordingSink()
        let plan = DownloadPlan(target: try TargetURI("http://\(peer.authority)/start"))
        let outcome = try await Downloader(
            transport: transport,
            time: InstantTime(),
            jitter: { 0 }
        ).run(plan, into: sink)
        await transport.shutdown()
        #expect(outcome.end == .completed(completeLength: 200_000))
        #expect(firstDifference(sink.run(), bytes) == nil)
        #expect(outcome.bytesRefetched == 0)
        #expect(outcome.requests == 4)
        // The redirect's body was read to its end, so each attempt needed one connection.
        #expect(peer.connections == 2)
    }
}
#endif
