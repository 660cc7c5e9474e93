import CTieredCache
import Dispatch
import Glibc
import Logging
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// Which cache an open gives, and what a release waits for.
@Suite(.tags(.realTime), .timeLimit(.minutes(5)))
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

    private final class Passed: Sendable {
        private let passed = Guarded(DispatchTimeInterval.nanoseconds(0))

        var time: DispatchTimeInterval { passed.withLock { $0 } }

        func pass(_ time: DispatchTimeInterval) { passed.withLock { $0 = time } }
    }

    @Test("How long a cache may hang in its end counts from the beginning of that, not of an open")
    func youngClosing() async throws {
        try await HostedFixture.run { fixture in
            let path = fixture.directory.path
            let transport = Hanging()
            let begin = DispatchTime.now()
            let passed = Passed()
            var limits = OpenCaches.Limits(opening: .seconds(3600), release: .nanoseconds(0))
            limits.lines = .nanoseconds(0)
            limits.now = { begin + passed.time }
            let all = OpenCaches(limits: limits)
            let first = try all.open(hangingOptions(path, transport))
            await fixture.host { all.letGo(first) }
            // An hour later: who opens now has its place, without a wait of its own.
            passed.pass(.seconds(3600))
            let second = try await fixture.host {
                Result { try all.open(HostedOptions(directory: path)) }
            }.get()
            #expect(second.hosted !== first.hosted)
            transport.mayEnd.open()
            await fixture.host { all.letGo(second) }
        }
    }

    /// Something that fails twice, and that one thread may try at a time.
    private final class Trying: Sendable {
        private let state = Guarded((tries: 0, inside: 0, most: 0))

        var tries: Int { state.withLock { $0.tries } }
        var mostInside: Int { state.withLock { $0.most } }

        func tryIt() throws(Status) {
            state.withLock { state in
                state.inside += 1
                state.most = max(state.most, state.inside)
            }
            for _ in 0..<100 { sched_yield() }
            let tries = state.withLock { state in
                state.inside -= 1
                state.tries += 1
                return state.tries
            }
            if tries < 3 { throw .invalid }
        }
    }

    @Test(
        "One of those that use something first does it, the others wait; after a failure one more"
    )
    func firstUse() async throws {
        let (use, trying) = (FirstUse(), Trying())
        let threads = IOExecutor(threads: 8, name: "users")
        let failures = await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask {
                    await threads.run {
                        number { () throws(Status) in
                            try use.ensure { () throws(Status) in try trying.tryIt() }
                            return 0
                        }
                    }
                }
            }
            return await group.reduce(0) { $1 < 0 ? $0 + 1 : $0 }
        }
        #expect(failures == 2 && trying.tries == 3 && trying.mostInside == 1)
    }

    @Test("A release waits for a log function and for the end of its cache up to one deadline")
    func oneDeadline() async throws {
        try await HostedFixture.run { fixture in
            let (transport, log) = (Hanging(), HangingLog())
            let asked = Asked()
            var limits = OpenCaches.Limits(release: .nanoseconds(0), lines: .nanoseconds(0))
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

    private func canonical(_ path: FilePath, in directory: FilePath?) throws(Status) -> FilePath {
        CanonicalPath.followingLinks(try CanonicalPath.absolute(path, in: directory))
    }

    /// A working directory that is another one whenever it is asked for.
    private final class Working: Sendable {
        private let directories: Guarded<[FilePath]>

        init(_ directories: FilePath...) { self.directories = Guarded(directories) }

        func next() -> FilePath? {
            directories.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        }
    }

    @Test("A relative directory is resolved once, also where the open waits for another cache")
    func changedWorkingDirectory() async throws {
        try await HostedFixture.run { fixture in
            for name in ["first", "second"] as [FilePath.Component] {
                try fixture.directory.makeDirectory(name.string)
            }
            let path = fixture.directory.path
            let transport = Hanging()
            let working = Working(path.appending("first"), path.appending("second"))
            var limits = OpenCaches.Limits(opening: .never, release: .never)
            limits.workingDirectory = { working.next() }
            let all = OpenCaches(limits: limits)
            let first = try all.open(hangingOptions(path.appending("first/films"), transport))
            async let end: Void = fixture.host { all.letGo(first) }
            await transport.isEnding.wait()
            async let opening = fixture.host {
                Result { try all.open(HostedOptions(directory: "films")) }
            }
            transport.mayEnd.open()
            await end
            let second = try await opening.get()
            #expect(second.hosted.name == path.appending("first/films"))
            await fixture.host { all.letGo(second) }
        }
    }

    @Test("The bytes of a directory's name that are no UTF-8 stay as they are")
    func nameOfBytes() throws {
        let directory = try TemporaryDirectory()
        let name: [CChar] = [0x66, -1, 0]
        let odd = name.withUnsafeBufferPointer { name -> FilePath? in
            name.baseAddress.map {
                directory.path.appending(FilePath(platformString: $0).components)
            }
        }
        let link = directory.path.appending("link")
        #expect(odd?.withPlatformString { mkdir($0, 0o755) } == 0)
        #expect(odd?.withPlatformString { symlink($0, link.string) } == 0)
        #expect(CanonicalPath.followingLinks(link.appending("films")) == odd?.appending("films"))
    }

    @Test("All spellings of a directory, and links to it, are one cache with an absolute path")
    func spellings() async throws {
        try await HostedFixture.run { fixture in
            let path = fixture.directory.path
            try fixture.directory.makeDirectory("films")
            #expect(symlink("films", path.appending("link").string) == 0)
            let spellings = ["films", "link", "films/../films/.", "none/../films", ".//link/"]
            for (index, spelling) in spellings.enumerated() {
                let canonical = try canonical(FilePath(spelling), in: path)
                #expect(canonical == path.appending("films"), "\(spelling)")
                let handle = await fixture.host { fixture.open(path.appending("films")) }
                let other = await fixture.host {
                    fixture.open(FilePath("\(path)/\(spelling)"))
                }
                let hosted = [handle, other].map { caches?.find($0.pointer)?.hosted }
                #expect(hosted[0] != nil && hosted[0] === hosted[1])
                #expect(handle.pointer != other.pointer, "\(index)")
                await fixture.host {
                    handle.release()
                    other.release()
                }
            }
            #expect(try canonical("a/../b", in: path) == path.appending("b"))
            #expect(try canonical("/", in: path) == "/")
        }
    }

    @Test("A relative directory where the working directory is gone is invalid")
    func noWorkingDirectory() {
        for spelling in ["films", ".", "..", "./films"] as [FilePath] {
            #expect(throws: Status.self) { try canonical(spelling, in: nil) }
            #expect(throws: Status.self) { try canonical(spelling, in: "(unreachable)/a") }
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
