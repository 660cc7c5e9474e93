import FoundationEssentials
import SystemPackage
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Caches of one directory, before a scripted origin: the first one owns it.
final class GuestFixture: Sendable {
    /// A cache as a process has it, with its service.
    struct Member: Sendable {
        let cache: MediaCache
        let service: GuestService

        func stop() async {
            await service.stop()
            await cache.shutdown()
        }
    }

    let origin: ScriptedOrigin
    let files: TemporaryDirectory
    let directory: FilePath
    private let members = Guarded<[Member]>([])

    private init(origin: ScriptedOrigin, files: TemporaryDirectory, directory: FilePath) {
        self.origin = origin
        self.files = files
        self.directory = directory
    }

    /// Opens the directory once more, and waits until the service listens if it owns it.
    func join(
        time: any TimeSource = SystemTimeSource(),
        _ change: (inout MediaCache.Configuration) -> Void = { _ in }
    ) async throws -> Member {
        var configuration = MediaCache.Configuration(path: directory)
        configuration.minimumFreeDisk = 0
        configuration.respondsToMemoryPressure = false
        configuration.retries = 1
        configuration.timeout = .seconds(300)
        configuration.timeSource = time
        change(&configuration)
        let cache = try MediaCache(configuration)
        let service = GuestService(cache: cache, directory: configuration.directory)
        await service.untilListening()
        let member = Member(cache: cache, service: service)
        members.withLock { $0.append(member) }
        return member
    }

    /// Runs `body` with an origin and a directory; all caches are shut down afterwards.
    static func run(
        directory name: String = "cache",
        _ body: (GuestFixture) async throws -> Void
    ) async throws {
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("tieredcache-guests")
        let fixture = GuestFixture(
            origin: origin,
            files: files,
            directory: files.appending("cache").appending(name)
        )
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(fixture))
        } catch {
            result = .failure(error)
        }
        for member in fixture.members.withLock({ $0 }) { await member.stop() }
        await origin.stop()
        try result.get()
    }

    func request(_ path: String, key: String? = nil) throws -> CacheRequest {
        try CacheRequest(origin.url(path), key: key)
    }

    /// The bytes that the origin has sent of a resource.
    func sent(_ path: String) -> Int64 { origin.log.bodyBytesWritten(for: path) }

    /// The bytes of a generated resource.
    func bytes(_ path: String) throws -> Data {
        let resource = try #require(origin.resource(path))
        return Data(try #require(resource.bodyOfVersion(resource.version)).bytes())
    }
}
