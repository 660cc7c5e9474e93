import FoundationEssentials
import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

/// The whole engine against a server of other authors.
@Suite("The engine and nginx", .tags(.server, .realTime), .timeLimit(.minutes(10)))
struct NginxEngineTests {
    /// Reads a body piece by piece, compares every byte, and returns where the bytes came from.
    private func read(
        _ url: String,
        _ content: GeneratedBody,
        from cache: MediaCache
    ) async throws -> ResponseSource {
        let response = try await cache.response(for: CacheRequest(url))
        #expect(response.status == .ok)
        var offset: Int64 = 0
        for try await chunk in response.body {
            let matches = chunk.withUnsafeBytes { content.matches($0, at: offset) }
            try #require(matches, "\(url) at \(offset)")
            offset += Int64(chunk.count)
        }
        #expect(offset == content.length, "\(url)")
        return response.source
    }

    private func withCache<Result: Sendable>(
        _ directory: TemporaryDirectory,
        transport: NIOTransport? = nil,
        _ body: (MediaCache) async throws -> Result
    ) async throws -> Result {
        var configuration = MediaCache.Configuration(path: directory.appending("cache"))
        configuration.transport = transport
        let cache = try MediaCache(configuration)
        let result = try await body(cache)
        await cache.shutdown()
        return result
    }

    @Test(
        "Bodies from 0 bytes to 256 MiB: from the origin, then from the disk, over one connection"
    )
    func sizes() async throws {
        let sizes: [Int64] = [0, 1, 65_536, 65_537, 3 << 20, 256 << 20]
        let files = Dictionary(
            uniqueKeysWithValues: sizes.map { ("\($0)", GeneratedBody(seed: 3, length: $0)) }
        )
        let directory = try TemporaryDirectory("tieredcache-integration")
        let (_, exchanges) = try await NginxServer.run(files: files) { server in
            try await withCache(directory) { cache in
                for (name, content) in files {
                    let source = try await read(server.url("/\(name)"), content, from: cache)
                    #expect(source == .origin, "\(source)")
                }
            }
            try await withCache(directory) { cache in
                for (name, content) in files {
                    let source = try await read(server.url("/\(name)"), content, from: cache)
                    #expect(source == .disk, "\(source)")
                }
            }
        }
        #expect(exchanges.count == sizes.count)
        #expect(Set(exchanges.map(\.connection)).count == 1)
    }

    @Test("Chunked, gzip offered, TLS")
    func framings() async throws {
        let content = GeneratedBody(seed: 4, length: 3_000_000)
        let directory = try TemporaryDirectory("tieredcache-integration")
        _ = try await NginxServer.run(files: ["a": content]) { server in
            let transport = NIOTransport(additionalTrustRoots: [server.certificate])
            try await withCache(directory, transport: transport) { cache in
                for url in [
                    server.url("/chunked/a"), server.url("/gzip/a"), server.secureURL("/a"),
                ] {
                    let source = try await read(url, content, from: cache)
                    #expect(source == .origin, "\(source)")
                    let again = try await read(url, content, from: cache)
                    #expect(again != .origin, "\(again)")
                }
            }
        }
    }

    @Test("Concurrent readers of one file share one transfer")
    func concurrent() async throws {
        let content = GeneratedBody(seed: 6, length: 2 << 20)
        let directory = try TemporaryDirectory("tieredcache-integration")
        let (_, exchanges) = try await NginxServer.run(files: ["a": content]) { server in
            try await withCache(directory) { cache in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<20 {
                        group.addTask {
                            _ = try await read(server.url("/slow/a"), content, from: cache)
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }
        #expect(exchanges.map(\.target) == ["/slow/a"])
    }
}
