import Dispatch
import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// A cache on a disk in memory, an origin that is a script, and a body of two blocks.
struct DigestFixture: Sendable {
    /// Holds up one call of the disk until the reader that it must not overtake has ended, or half
    /// a second has passed since it could have.
    final class Holdup: Sendable {
        let isReached = Latch<Void>()
        private let mayEnd = DispatchSemaphore(value: 0)
        private let hasEnded = DispatchSemaphore(value: 0)

        /// - Returns: whether this call was held up: the first one.
        @discardableResult
        func hold() -> Bool {
            guard isReached.complete(with: .success(())) else { return false }
            mayEnd.wait()
            _ = hasEnded.wait(timeout: .now() + .milliseconds(500))
            return true
        }

        /// From now on nothing but the held call keeps the reader from its end.
        func readerMayEnd() { mayEnd.signal() }

        func readerHasEnded() { hasEnded.signal() }
    }

    /// The end of the body in its last block.
    static let tail = 4321
    static let body = Data((0..<65_536 + tail).map { UInt8(truncatingIfNeeded: $0 / 7) })
    static let wrong = Data(repeating: 1, count: body.count)

    let time = ManualTimeSource()

    func configuration(_ transport: ScriptedTransport) -> MediaCache.Configuration {
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.transport = transport
        configuration.timeSource = time
        configuration.respondsToMemoryPressure = false
        configuration.minimumFreeDisk = 0
        configuration.keepsHistory = false
        configuration.maximumSegments = 2
        configuration.networkMonitor = nil
        return configuration
    }

    func withCache(
        _ disk: any FileSystem,
        _ transport: ScriptedTransport,
        _ body: (MediaCache) async throws -> Void
    ) async throws {
        let cache = try MediaCache(configuration(transport), fileSystem: disk)
        do {
            try await body(cache)
        } catch {
            await cache.shutdown()
            throw error
        }
        await cache.shutdown()
    }

    /// A whole answer, in two chunks of which the second one ends the last block.
    ///
    /// - Parameters:
    ///   - bytes: the body.
    ///   - promised: the body that the origin promises; nil for no promise.
    ///   - delay: the time before the second chunk.
    /// - Returns: the answer.
    func answer(
        _ bytes: Data,
        promising promised: Data? = nil,
        delay: Duration = .zero
    ) throws -> ScriptedResponse {
        var fields: HTTPFields = [
            .contentLength: "\(bytes.count)", .acceptRanges: "bytes",
            .eTag: "\"\(bytes[0])\"", .cacheControl: "max-age=60",
        ]
        if let promised { try fields.promise(promised) }
        return ScriptedResponse(
            status: 200,
            fields: fields,
            steps: [
                .bytes([UInt8](bytes.prefix(65_536 + 1000))), .delay(delay),
                .bytes([UInt8](bytes.dropFirst(65_536 + 1000))),
            ]
        )
    }

    /// The answer to a request for the last block.
    func lastBlock(of bytes: Data, promising promised: Data? = nil) throws -> ScriptedResponse {
        var fields: HTTPFields = [
            .contentLength: "\(bytes.count - 65_536)",
            .contentRange: "bytes 65536-\(bytes.count - 1)/\(bytes.count)",
            .eTag: "\"\(bytes[0])\"", .cacheControl: "max-age=60",
        ]
        if let promised { try fields.promise(promised) }
        return ScriptedResponse(
            status: 206,
            fields: fields,
            steps: [.bytes([UInt8](bytes.dropFirst(65_536)))]
        )
    }

    /// Stores bytes whose head promises ``body``, as a process does that ends before it has compared
    /// them.
    @discardableResult
    func storePromising(_ bytes: Data, in cache: MediaCache) async throws -> DiskEntry {
        let request = try request()
        try await cache.store(bytes, for: request)
        let store = try #require(cache.engine.storage.disk.openStore)
        let entry = try #require(try store.entry(for: request.key))
        let head = try #require(StoredResponse(encoded: entry.metadata))
        var fields = head.fields
        try fields.promise(Self.body)
        try entry.updateMetadata(head.with(fields).encoded())
        cache.engine.storage.memory.remove(request.key)
        return entry
    }

    func request(promising body: Data? = nil) throws -> CacheRequest {
        var request = try CacheRequest("http://example.com/film")
        if let body { request.expectedDigests = [try .of(body)] }
        return request
    }
}

extension ContentDigest {
    /// The SHA-256 of bytes.
    static func of(_ bytes: Data) throws -> ContentDigest {
        var digest: ContentDigest?
        if let context = DigestContext(.sha256) {
            let isTaken = bytes.withUnsafeBytes { context.update($0) }
            if isTaken { digest = context.finish() }
        }
        return try #require(digest)
    }
}

extension HTTPFields {
    /// Promises a body by `Repr-Digest`.
    mutating func promise(_ body: Data) throws {
        let name = try #require(HTTPField.Name("Repr-Digest"))
        let digest = Data(try ContentDigest.of(body).bytes).base64EncodedString()
        self[name] = "sha-256=:\(digest):"
    }
}
