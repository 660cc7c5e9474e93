import FoundationEssentials
import HTTPCaching
import SystemPackage
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

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
        jitter: Double? = nil,
        _ change: (inout MediaCache.Configuration) -> Void = { _ in }
    ) async throws -> Member {
        var configuration = MediaCache.Configuration(path: directory)
        configuration.minimumFreeDisk = 0
        configuration.respondsToMemoryPressure = false
        configuration.retries = 1
        configuration.timeout = .seconds(300)
        configuration.timeSource = time
        change(&configuration)
        var parts = EngineParts()
        if let jitter { parts.jitter = { jitter } }
        let cache = try MediaCache(configuration, parts: parts)
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

    /// Advances a guest's clock, alarm by alarm, until it asks the origin for a resource.
    ///
    /// - Parameters:
    ///   - time: the clock.
    ///   - patience: how long the guest waits for a sign of its owner.
    ///   - path: the resource.
    func advance(_ time: ManualTimeSource, by patience: Duration, untilAsked path: String) async {
        // A question that is put late has a later alarm, and four of them are a reader's deadline.
        var left = patience * 3
        while true {
            // In this order: what is due before the origin is asked is the owner's.
            let next = time.timeToNextDeadline
            guard origin.log.exchanges(for: path).isEmpty else { return }
            if let next, next <= min(patience, left) {
                time.advance(by: next)
                left -= next
            }
            await Task.yield()
        }
    }

    /// When the owner signed LOCK.
    func ownerBegan() throws -> WallTime {
        let file = try FileDescriptor.open(directory.appending("LOCK"), .readOnly)
        var status = stat()
        let result = fstat(file.rawValue, &status)
        try file.close()
        try #require(result == 0)
        #if canImport(Glibc)
        let time = status.st_mtim
        #else
        let time = status.st_mtimespec
        #endif
        return WallTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// What an owner sends of a resource until it stops in the middle of the body.
    ///
    /// - Parameter generation: that of the entry that it has stored it in; nil for none.
    func beginning(
        of path: String,
        count: Int,
        generation: UInt64? = nil
    ) throws -> [UInt8] {
        let (bytes, tag) = (try bytes(path), try #require(origin.resource(path)?.entityTagValue))
        let head =
            "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nETag: \(tag)\r\n"
            + "Cache-Control: max-age=3600\r\nContent-Length: \(bytes.count)\r\n"
            + "TieredCache-Location: \(origin.url(path))\r\n"
            + (generation.map { "TieredCache-Stored: \($0)\r\n" } ?? "") + "\r\n"
        return Array(head.utf8) + bytes.prefix(count)
    }

    /// Has an owner listen again.
    func listenAgain(_ owner: Member) async -> GuestService {
        let service = GuestService(
            cache: owner.cache,
            directory: URL(filePath: directory.string)
        )
        await service.untilListening()
        return service
    }

    /// Flips a bit of the first body that is as long.
    func damageBody(at offset: Int64) throws {
        let entries = directory.appending("entries")
        let names = try FileManager.default.subpathsOfDirectory(atPath: entries.string)
        for name in names where name.contains("/") {
            let file = try FileDescriptor.open(entries.appending(name), .readOnly)
            let length = try file.seek(offset: 0, from: .end)
            try file.close()
            guard length > offset else { continue }
            let body = try FileDescriptor.open(entries.appending(name), .readWrite)
            var byte: [UInt8] = [0]
            let count = try byte.withUnsafeMutableBytes {
                try body.read(fromAbsoluteOffset: offset, into: $0)
            }
            try #require(count == 1)
            byte[0] ^= 1
            _ = try body.writeAll(toAbsoluteOffset: offset, byte)
            return try body.close()
        }
        Issue.record("no file is as long")
    }

    /// The bytes of a generated resource.
    func bytes(_ path: String) throws -> Data {
        let resource = try #require(origin.resource(path))
        return Data(try #require(resource.bodyOfVersion(resource.version)).bytes())
    }
}
