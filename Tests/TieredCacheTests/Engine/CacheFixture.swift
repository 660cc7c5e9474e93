import FoundationEssentials
import SystemPackage
import TieredCacheTesting

@testable import TieredCache

/// A cache over a directory of its own and an origin on loopback.
///
/// `withCache` opens a cache, as a new process would, and shuts it down again; the directory and
/// the origin stay for the next one.
final class CacheFixture: Sendable {
    let origin: ScriptedOrigin
    let directory: FilePath

    private init(_ origin: ScriptedOrigin) {
        self.origin = origin
        let name = "tieredcache-\(UInt64.random(in: .min ... .max))"
        directory = FilePath(FileManager.default.temporaryDirectory.path).appending(name)
    }

    deinit {
        do {
            try FileManager.default.removeItem(atPath: directory.string)
        } catch {
            // A test that stored nothing has made no directory.
        }
    }

    /// Runs `body` with an origin, which is stopped afterwards.
    static func run(_ body: (CacheFixture) async throws -> Void) async throws {
        let fixture = CacheFixture(try await ScriptedOrigin.start())
        do {
            try await body(fixture)
        } catch {
            await fixture.origin.stop()
            throw error
        }
        await fixture.origin.stop()
    }

    func configuration() -> MediaCache.Configuration {
        var configuration = MediaCache.Configuration(path: directory)
        configuration.respondsToMemoryPressure = false
        configuration.minimumFreeDisk = 0
        // It would take part in every test that counts calls, files or sleepers.
        configuration.keepsHistory = false
        return configuration
    }

    /// Opens the cache, runs `body`, and shuts the cache down.
    func withCache<Value>(
        _ change: (inout MediaCache.Configuration) -> Void = { _ in },
        _ body: (MediaCache) async throws -> Value
    ) async throws -> Value {
        var configuration = configuration()
        change(&configuration)
        let cache = try MediaCache(configuration)
        do {
            let value = try await body(cache)
            await cache.shutdown()
            return value
        } catch {
            await cache.shutdown()
            throw error
        }
    }

    func request(_ path: String) throws -> CacheRequest {
        try CacheRequest(origin.url(path))
    }
}

extension CacheResponse {
    /// Reads the body and says where it came from.
    func read() async throws -> (bytes: Data, source: ResponseSource) {
        let bytes = try await body.collect()
        return (bytes, source)
    }
}

extension OriginResource {
    /// All bytes of a generated body, as the engine delivers them.
    var allBytes: Data {
        guard let generatedBody else { return Data() }
        return Data(generatedBody.bytes())
    }
}
