import CTieredCache
import Dispatch
import Glibc
import Logging
import SystemPackage
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// Which cache an open gives, and what a release waits for.
@Suite(.timeLimit(.minutes(5)))
struct OpeningTests {
    /// A transport whose end hangs until a test lets it go.
    private final class Hanging: Transport {
        let isEnding = OriginGate()
        let mayEnd = OriginGate()

        func send(_: TransportRequest) async throws(TransportError) -> TransportResponse {
            throw TransportError(.connect, "no request is expected")
        }

        func shutdown() async {
            isEnding.open()
            await mayEnd.wait()
        }
    }

    /// Options of a cache that never ends by itself: no time passes for it.
    private func hangingOptions(_ directory: FilePath, _ transport: Hanging) -> HostedOptions {
        var options = HostedOptions(directory: directory)
        options.configuration.transport = transport
        options.configuration.timeSource = ManualTimeSource()
        return options
    }

    @Test("Where a cache hangs in its end, all opens after that share one that waits for its place")
    func closing() async throws {
        try await HostedFixture.run { fixture in
            let path = fixture.directory.path
            let transport = Hanging()
            let limits = OpenCaches.Limits(opening: .nanoseconds(0), release: .never)
            let all = OpenCaches(limits: limits)
            let first = try all.open(hangingOptions(path, transport))
            async let end: Void = fixture.host { all.letGo(first) }
            await transport.isEnding.wait()
            let second = try all.open(HostedOptions(directory: path))
            #expect(second.hosted !== first.hosted)
            #expect(second.hosted.storageError?.code == .notOwner)
            let third = try all.open(HostedOptions(directory: path))
            #expect(third.hosted === second.hosted)
            transport.mayEnd.open()
            await end
            let fourth = try all.open(HostedOptions(directory: path))
            #expect(fourth.hosted === second.hosted)
            try all.hold(second.hosted)
            for opened in [second, third, fourth] { await fixture.host { all.letGo(opened) } }
            all.letGo(second.hosted)
            #expect(throws: Status.self) { try all.hold(second.hosted) }
        }
    }

    @Test("An open waits for a cache of the same directory that is closing, and owns it then")
    func waits() async throws {
        try await HostedFixture.run { fixture in
            let path = fixture.directory.path
            let transport = Hanging()
            let all = OpenCaches(limits: OpenCaches.Limits(opening: .never, release: .never))
            let first = try all.open(hangingOptions(path, transport))
            async let end: Void = fixture.host { all.letGo(first) }
            await transport.isEnding.wait()
            async let opening = fixture.host {
                Result { try all.open(HostedOptions(directory: path)) }
            }
            transport.mayEnd.open()
            await end
            let second = try await opening.get()
            #expect(second.hosted !== first.hosted && second.hosted.storageError == nil)
            await fixture.host { all.letGo(second) }
        }
    }

    @Test("A release waits for a log function and for the end of its cache up to one deadline")
    func oneDeadline() async throws {
        try await HostedFixture.run { fixture in
            let (transport, log) = (Hanging(), HangingLog())
            let asked = Asked()
            var limits = OpenCaches.Limits(release: .nanoseconds(0))
            limits.now = { asked.now() }
            let all = OpenCaches(limits: limits)
            var options = hangingOptions(fixture.directory.path, transport)
            options.log = log.bridge
            let opened = try all.open(options)
            opened.hosted.logs.logger.critical("a line, in which the function hangs")
            await fixture.host { log.isCalled.wait() }
            let before = asked.count
            await fixture.host { all.letGo(opened) }
            // A wait of its own for each would ask for the time again.
            #expect(asked.count == before + 1)
            transport.mayEnd.open()
            log.mayReturn.signal()
        }
    }

    private final class Asked: Sendable {
        private let times = Guarded(0)

        var count: Int { times.withLock { $0 } }

        func now() -> DispatchTime {
            times.withLock { $0 += 1 }
            return .now()
        }
    }

    /// A log function that does not return before a test lets it.
    private final class HangingLog: Sendable {
        let isCalled = DispatchSemaphore(value: 0)
        let mayReturn = DispatchSemaphore(value: 0)

        var bridge: LogBridge? {
            var options = tiered_options()
            options.log_level = Int32(TIERED_LOG_ERROR)
            options.log_context = Unmanaged.passUnretained(self).toOpaque()
            options.log = { context, _, _ in
                guard let context else { return }
                let log = Unmanaged<HangingLog>.fromOpaque(context).takeUnretainedValue()
                log.isCalled.signal()
                log.mayReturn.wait()
            }
            return LogBridge(options)
        }
    }

    // MARK: Directories

    @Test("All spellings of a directory, and links to it, are one cache with an absolute path")
    func spellings() async throws {
        try await HostedFixture.run { fixture in
            let path = fixture.directory.path
            try fixture.directory.makeDirectory("films")
            #expect(symlink("films", path.appending("link").string) == 0)
            let spellings = ["films", "link", "films/../films/.", "none/../films", ".//link/"]
            for (index, spelling) in spellings.enumerated() {
                let canonical = try CanonicalPath.of(FilePath(spelling), in: path)
                #expect(canonical == path.appending("films"), "\(spelling)")
                let handle = await fixture.host { fixture.open(path.appending("films")) }
                let other = await fixture.host {
                    fixture.open(FilePath("\(path)/\(spelling)"))
                }
                #expect(caches.find(handle.pointer)?.hosted === caches.find(other.pointer)?.hosted)
                #expect(handle.pointer != other.pointer, "\(index)")
                await fixture.host {
                    handle.release()
                    other.release()
                }
            }
            #expect(try CanonicalPath.of("a/../b", in: path) == path.appending("b"))
            #expect(try CanonicalPath.of("/", in: path) == "/")
        }
    }

    @Test("A relative directory where the working directory is gone is invalid")
    func noWorkingDirectory() {
        for spelling in ["films", ".", "..", "./films"] as [FilePath] {
            #expect(throws: Status.self) { try CanonicalPath.of(spelling, in: nil) }
            #expect(throws: Status.self) { try CanonicalPath.of(spelling, in: "(unreachable)/a") }
        }
    }

    @Test("Where no directory is known the status of the storage says so, unless none is wanted")
    func noDirectory() async throws {
        try await HostedFixture.run { fixture in
            var options = HostedOptions(directory: fixture.directory.path)
            options.configuration.path = nil
            let unknown = try OpenCaches.all.open(options)
            #expect(unknown.hosted.storageError?.code == .localStorage)
            options.isMemoryOnly = true
            let wanted = try OpenCaches.all.open(options)
            #expect(wanted.hosted.storageError == nil && wanted.hosted !== unknown.hosted)
            for opened in [unknown, wanted] { await fixture.host { OpenCaches.all.letGo(opened) } }
            let empty = await fixture.host { fixture.open("") }
            #expect(tiered_storage_status(empty.pointer, nil, 0) == 0)
            await fixture.host { empty.release() }
        }
    }
}
