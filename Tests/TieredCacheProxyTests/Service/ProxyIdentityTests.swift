import Dispatch
import FoundationEssentials
import Logging
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ProxyIdentityTests {
    @Test func textIsReadBack() {
        for identity in [
            ProxyIdentity(), ProxyIdentity(port: 80), ProxyIdentity(token: "sixteen-letters-"),
            ProxyIdentity(port: 65_535, token: "a-b.c_d~a-b.c_d~"),
        ] {
            #expect(ProxyIdentity(text: identity.text) == identity)
        }
    }

    @Test(arguments: [
        "", "tieredcache-proxy 2\nport 80\ntoken a\n", "port 80\ntoken a\n", "\0\0\0",
        "tieredcache-proxy 1\nport 0\nport 65536\nport x\ntoken a/b\ntoken\nport\n",
        "tieredcache-proxy 1\ntoken fifteen-letters\n",
    ])
    func whatIsNotOursIsIgnored(text: String) {
        #expect(ProxyIdentity(text: text) == ProxyIdentity())
    }

    @Test func anotherPortIsTakenAndKeptWhereTheOldOneIsTaken() async throws {
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("proxy-identity")
        var bases: [String] = []
        var ports: [Int] = []
        var others: [HTTPServer] = []
        for run in 0..<3 {
            let fixture = try await ProxyFixture(origin: origin, files: files)
            bases.append(fixture.base)
            ports.append(fixture.proxy.port)
            await fixture.stop()
            guard run == 0 else { continue }
            // Another program listens there now.
            others.append(
                try await HTTPServer.start(
                    at: .port(ports[0]),
                    responder: NoResponder(),
                    limits: ServerLimits(),
                    logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
                )
            )
        }
        for other in others { await other.stop() }
        await origin.stop()
        #expect(ports[0] != ports[1] && ports[1] == ports[2])
        #expect(Set(bases.map { $0.split(separator: "/").last }).count == 1)
    }

    private struct NoResponder: Responder {
        func respond(
            to request: ServerRequest,
            body: RequestBody,
            with writer: ResponseWriter
        ) async {}
    }

    @Test func onlyTheOwnerMayReadTheFile() throws {
        let files = try TemporaryDirectory("proxy-identity")
        let identity = ProxyIdentity(port: 1, token: "secret-of-an-owner")
        try identity.write(to: files.path)
        #expect(ProxyIdentity.read(from: files.path) == identity)
        let path = files.path.appending(ProxyIdentity.fileName)
        #expect(try Self.permissions(of: path) & 0o077 == 0)
        // Shorter than what was there.
        try ProxyIdentity(port: 2).write(to: files.path)
        #expect(ProxyIdentity.read(from: files.path) == ProxyIdentity(port: 2))
        #expect(ProxyIdentity.read(from: files.path.appending("none")) == ProxyIdentity())
    }

    @Test func whatOthersMayHaveWrittenIsNotBelieved() throws {
        let files = try TemporaryDirectory("proxy-identity")
        let identity = ProxyIdentity(port: 1, token: "sixteen-letters-")
        try identity.write(to: files.path)
        let path = files.path.appending(ProxyIdentity.fileName)
        // Read by others it may have been; from now on it is not.
        try #require(chmod(path.string, 0o644) == 0)
        #expect(ProxyIdentity.read(from: files.path) == identity)
        #expect(try Self.permissions(of: path) & 0o777 == 0o600)
        for mode: mode_t in [0o666, 0o620, 0o602] {
            try #require(chmod(path.string, mode) == 0)
            #expect(ProxyIdentity.read(from: files.path) == ProxyIdentity())
        }
        if geteuid() == 0 {
            try #require(chown(path.string, 65_534, 65_534) == 0)
            #expect(ProxyIdentity.read(from: files.path) == ProxyIdentity())
            #expect(throws: (any Error).self) { try identity.write(to: files.path) }
        }
        try #require(unlink(path.string) == 0)
        try #require(symlink("/etc/hostname", path.string) == 0)
        #expect(ProxyIdentity.read(from: files.path) == ProxyIdentity())
        #expect(throws: (any Error).self) { try identity.write(to: files.path) }
    }

    @Test func aTokenThatCanBeTriedOutIsRefused() async throws {
        for token in ["x", "fifteen-letters", "a-b/c-d-e-f-g-h-i-j"] {
            let error = await #expect(throws: CacheError.self) {
                try await ProxyFixture.run({ $0.token = token }, { _ in })
            }
            #expect(error?.code == .invalidArgument && error?.message.contains("16") == true)
        }
    }

    @Test func onlyAFileURLNamesADirectory() async throws {
        let files = try TemporaryDirectory("proxy-identity")
        let cache = try MediaCache(MediaCache.Configuration(path: files.path))
        let file = files.appending(ProxyIdentity.fileName)
        for text in ["http://example.com\(files.path)", "file://example.com\(files.path)", "a/b"] {
            let url = try #require(URL(string: text))
            let error = await #expect(throws: CacheError.self) {
                try await PlayerProxy.start(cache: cache, directory: url)
            }
            #expect(error?.code == .invalidArgument)
        }
        #expect(access(file.string, F_OK) != 0)
        let url = try #require(URL(string: "file://localhost\(files.path)"))
        let proxy = try await PlayerProxy.start(cache: cache, directory: url)
        await proxy.stop()
        #expect(access(file.string, F_OK) == 0)
        await cache.shutdown()
    }

    /// Threads that note during which of their jobs the file PROXY changes.
    private final class WatchingThreads: Sendable {
        private let file: FilePath
        private let queue = DispatchQueue(label: "watching")
        private let changes = Guarded<[String]>([])

        init(_ file: FilePath) { self.file = file }

        /// The changes: `new` for one that is there, `private` for one that others may not read any
        /// more.
        ///
        /// A job resumes who waits for it before it ends, so this waits for its end.
        var seen: [String] { queue.sync { changes.withLock { $0 } } }

        func executor() -> IOExecutor {
            IOExecutor { [self] job, executor in
                queue.async {
                    let before = self.mode()
                    job.runSynchronously(on: executor)
                    let after = self.mode()
                    guard let after, before != after else { return }
                    self.changes.withLock { $0.append(before == nil ? "new" : "private") }
                }
            }
        }

        private func mode() -> mode_t? {
            var status = stat()
            return lstat(file.string, &status) == 0 ? status.st_mode : nil
        }
    }

    @Test func theFileIsReadAndWrittenOnThreadsThatMayWait() async throws {
        let files = try TemporaryDirectory("proxy-identity")
        let file = files.appending(ProxyIdentity.fileName)
        let threads = WatchingThreads(file)
        var parts = EngineParts()
        parts.makeExecutor = { name in
            name == "tc-write" ? threads.executor() : IOExecutor(threads: 1, name: name)
        }
        let cache = try MediaCache(MediaCache.Configuration(path: files.path), parts: parts)
        for changes in [["new"], ["new", "private"]] {
            let directory = URL(filePath: files.path.string)
            let proxy = try await PlayerProxy.start(cache: cache, directory: directory)
            await proxy.stop()
            #expect(threads.seen == changes)
            // The reader of the file takes this back.
            try #require(chmod(file.string, 0o644) == 0)
        }
        await cache.shutdown()
    }

    private static func permissions(of path: FilePath) throws -> mode_t {
        var status = stat()
        try #require(stat(path.string, &status) == 0)
        return status.st_mode
    }
}
