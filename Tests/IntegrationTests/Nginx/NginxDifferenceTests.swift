import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheProxy
import TieredCacheTesting

/// The reverse proxy, as a shared cache, beside nginx's `proxy_cache` before the same origin.
///
/// Each sequence of requests is sent to both. Where status, body or the number of requests at the
/// origin differ, the table says why; `docs/http-conformance.md` tells it to people.
@Suite(.tags(.server, .realTime), .timeLimit(.minutes(10)))
struct NginxDifferenceTests {
    /// What a client saw of one request, and how often the origin was asked for it.
    struct Outcome: Hashable, CustomStringConvertible {
        let status: Int
        let body: String
        let asked: Int

        var description: String { "\(status) '\(body)' asked \(asked)" }
    }

    @Test("Where the two differ, the table says why")
    func differences() async throws {
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("tieredcache-nginx")
        for (index, sequence) in DifferentialSequence.all.enumerated() {
            for side in ["own", "nginx"] {
                origin.serve("/\(side)/\(index)", sequence.resource, sequence.script)
            }
        }
        var configuration = MediaCache.Configuration(path: files.appending("cache"))
        configuration.isShared = true
        configuration.minimumFreeDisk = 0
        let cache = try MediaCache(configuration)
        var settings = ProxySettings()
        settings.port = 0
        let proxy = try await ReverseProxy.start(
            cache: cache,
            origin: origin.url("/"),
            settings: settings
        )
        _ = try await NginxServer.run(originPort: origin.port) { nginx in
            for (index, sequence) in DifferentialSequence.all.enumerated() {
                let own = try await Self.run(sequence, proxy.port, "/own/\(index)", "", origin)
                let theirs = try await Self.run(
                    sequence,
                    nginx.httpPort,
                    "/nginx/\(index)",
                    "/cached",
                    origin
                )
                let words = "\(sequence.name): own \(own), nginx \(theirs)"
                #expect((own == theirs) == (sequence.difference == nil), "\(words)")
            }
        }
        await proxy.stop()
        await cache.shutdown()
        await origin.stop()
    }

    private static func run(
        _ sequence: DifferentialSequence,
        _ port: Int,
        _ path: String,
        _ prefix: String,
        _ origin: ScriptedOrigin
    ) async throws -> [Outcome] {
        var outcomes: [Outcome] = []
        for request in sequence.requests {
            let before = origin.log.exchanges(for: path).count
            let lines = ["\(request.method) \(prefix)\(path) HTTP/1.1", "Host: a"] + request.fields
            let head = lines.joined(separator: "\r\n") + "\r\nConnection: close\r\n\r\n"
            // nginx has stored what it got before it closes the connection.
            let text = try await threads.run { () throws(RawConnection.Failure) in
                let connection = try RawConnection(port: port)
                try connection.send(head)
                return String(decoding: try connection.receiveAll(), as: UTF8.self)
            }
            let asked = origin.log.exchanges(for: path).count - before
            outcomes.append(try outcome(text, asked: asked))
        }
        return outcomes
    }

    private static let threads = IOExecutor(threads: 1)

    private static func outcome(_ text: String, asked: Int) throws -> Outcome {
        let end = try #require(text.firstRange(of: "\r\n\r\n"), "\(text)")
        let head = text[..<end.lowerBound]
        let words = head.split(separator: " ", maxSplits: 2)
        var body = String(text[end.upperBound...])
        let status = try #require(words.count > 1 ? Int(words[1]) : nil, "\(text)")
        if head.lowercased().contains("transfer-encoding: chunked") {
            // One chunk, its size before it and the last one behind it.
            body = String(body.split(separator: "\r\n", omittingEmptySubsequences: false)[1])
        }
        // What each says about an error of its own is no difference.
        return Outcome(status: status, body: status < 400 ? body : "", asked: asked)
    }
}
