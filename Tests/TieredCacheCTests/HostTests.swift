import CTieredCache
import Glibc
import Logging
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// What a host notices of a library that has threads of its own.
@Suite(.tags(.realTime), .timeLimit(.minutes(5)))
struct HostTests {
    @Test("A child of a fork gets a status from each function, and the parent goes on")
    func fork() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let stream = cache.stream(fixture.origin.url("/film"))
            #expect(await fixture.host { stream.read(10) }.result == 10)
            let status = await fixture.host { exitStatusOfFork { inChild(cache, stream) } }
            #expect(status == 0)
            #expect(await fixture.host { stream.all() }.result == 0)
            stream.release()
        }
    }

    /// - Returns: the number of the first function that gives something else; 0 for none.
    private func inChild(_ cache: CacheHandle, _ stream: StreamHandle) -> CInt {
        let forked = TIERED_E_FORKED.status
        var byte: UInt8 = 0
        var handle: OpaquePointer?
        let results: [CInt] = [
            tiered_cache_open(nil, &handle),
            tiered_stream_new(cache.pointer, nil, &handle),
            tiered_storage_status(cache.pointer, nil, 0),
            CInt(tiered_read(stream.pointer, &byte, 1)),
            CInt(tiered_try_read(stream.pointer, &byte, 1)),
            CInt(tiered_size(stream.pointer)),
            tiered_stream_fd(stream.pointer),
            tiered_stream_prepare(stream.pointer),
            CInt(tiered_job_list(cache.pointer, nil, 0)),
            tiered_proxy_start(cache.pointer),
        ]
        tiered_cancel(stream.pointer)
        tiered_stream_release(stream.pointer)
        tiered_cache_release(cache.pointer)
        guard tiered_stream_retain(stream.pointer) == nil, tiered_abi() == TIERED_ABI else {
            return 99
        }
        return results.firstIndex { $0 != forked }.map { CInt($0 + 1) } ?? 0
    }

    /// Swift hides fork(2), since most of what it has cannot be used in the child.
    private func exitStatusOfFork(_ child: () -> CInt) -> CInt {
        typealias Fork = @convention(c) () -> pid_t
        guard let symbol = dlsym(nil, "fork") else { return -1 }
        let process = unsafeBitCast(symbol, to: Fork.self)()
        if process == 0 { _exit(child()) }
        var status: CInt = 0
        while waitpid(process, &status, 0) == -1, errno == EINTR {}
        return status
    }

    @Test("Threads of the library block all signals that are not of their own making")
    func signals() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let stream = cache.stream(fixture.origin.url("/film"))
            #expect(await fixture.host { stream.all() }.result == 0)
            let open = Self.threads.filter { thread in
                ["tc-", "tiered-", "NIO-"].contains { thread.name.hasPrefix($0) }
                    && thread.blocked & Self.wanted != Self.wanted
            }
            #expect(open.isEmpty)
            #expect(Self.threads.contains { $0.name.hasPrefix("NIO-") })
            stream.release()
        }
    }

    /// All signals from 1 to 31 but KILL and STOP, the faults, and PROF.
    ///
    /// PIPE neither: here the test's origin has started the threads of SwiftNIO. The program in C of
    /// `scripts/check-library.sh` looks at it.
    private static var wanted: UInt64 {
        let own = [
            SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF, SIGPIPE,
        ]
        return (1...31).filter { !own.contains($0) }.reduce(0) { $0 | 1 << UInt64($1 - 1) }
    }

    private struct Thread {
        let name: String
        let blocked: UInt64
    }

    private static var threads: [Thread] {
        guard let directory = opendir("/proc/self/task") else { return [] }
        defer { closedir(directory) }
        var threads: [Thread] = []
        while let entry = readdir(directory) {
            let number = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if let thread = thread(number) { threads.append(thread) }
        }
        return threads
    }

    private static func thread(_ number: String) -> Thread? {
        guard let file = fopen("/proc/self/task/\(number)/status", "r") else { return nil }
        defer { fclose(file) }
        var (name, blocked): (String?, UInt64?) = (nil, nil)
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, 256, file) != nil {
            let text = line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            let words = String(decoding: text, as: UTF8.self).split(whereSeparator: \.isWhitespace)
            if words.first == "Name:" { name = words.last.map { String($0) } }
            if words.first == "SigBlk:" { blocked = words.last.flatMap { UInt64($0, radix: 16) } }
        }
        guard let name, let blocked else { return nil }
        return Thread(name: name, blocked: blocked)
    }

    @Test("The log function gets lines, and none after the last release")
    func log() async throws {
        try await HostedFixture.run { fixture in
            fixture.origin.serve("/film", HostedFixture.film, .first(2, .dropped()))
            let lines = LogLines()
            let count = await fixture.host { () -> Int in
                let cache = fixture.open { lines.want(TIERED_LOG_TRACE, in: &$0) }
                let stream = cache.stream(fixture.origin.url("/film"))
                _ = stream.all()
                cache.release()
                defer { stream.release() }
                return lines.all.count
            }
            #expect(lines.all.count == count && count > 0)
            #expect(lines.all.allSatisfy { !$0.contains("\n") && "12345".contains($0.prefix(1)) })
        }
    }

    @Test("Each open has a log of its own, which ends with its handle while others hold the cache")
    func logOfEach() async throws {
        try await HostedFixture.run { fixture in
            for path in ["/a", "/b", "/c"] { fixture.origin.serve(path, HostedFixture.film) }
            let (lines, others) = (LogLines(), LogLines())
            await fixture.host {
                let silent = fixture.open()
                let first = fixture.open { lines.want(TIERED_LOG_TRACE, in: &$0) }
                let second = fixture.open { others.want(TIERED_LOG_TRACE, in: &$0) }
                play("/a", second, fixture)
                tiered_cache_release(tiered_cache_retain(first.pointer))
                first.release()
                let told = (lines.all.count, others.all.count)
                #expect(told.0 > 0 && told.1 > 0)
                play("/b", second, fixture)
                second.release()
                #expect(lines.all.count == told.0)
                #expect(others.all.count > told.1)
                let end = others.all.count
                play("/c", silent, fixture)
                silent.release()
                #expect((lines.all.count, others.all.count) == (told.0, end))
            }
        }
    }

    /// Reads a film, of which the log tells more than one line.
    private func play(_ path: String, _ cache: CacheHandle, _ fixture: HostedFixture) {
        let stream = cache.stream(fixture.origin.url(path))
        #expect(stream.all().bytes.count == Int(HostedFixture.length))
        stream.release()
        // The engine logs removals, on the thread of the call.
        #expect(tiered_remove(cache.pointer, fixture.origin.url(path), nil) == 0)
    }

    @Test("A log has the lines of the opening, and those that wait when its handle is released")
    func firstAndLastLines() async throws {
        try await HostedFixture.run { fixture in
            let lines = LogLines()
            await fixture.host {
                // A file is in the place of the directory, which the engine logs.
                let cache = fixture.open("/dev/null") { lines.want(TIERED_LOG_WARNING, in: &$0) }
                cache.release()
            }
            #expect(lines.all.contains { $0.contains("/dev/null") })
            let (last, many) = (LogLines(), 1000)
            await fixture.host {
                let cache = fixture.open { last.want(TIERED_LOG_ERROR, in: &$0) }
                let logger = caches?.find(cache.pointer)?.hosted.logs.logger
                for number in 0..<many { logger?.critical("line \(number)") }
                cache.release()
            }
            #expect(last.all.count == many)
        }
    }

    @Test("A log wants no lines below its level, whatever others want")
    func logLevels() async throws {
        try await HostedFixture.run { fixture in
            fixture.origin.serve("/film", HostedFixture.film)
            let (all, errors) = (LogLines(), LogLines())
            await fixture.host {
                let first = fixture.open { errors.want(TIERED_LOG_ERROR, in: &$0) }
                let second = fixture.open { all.want(TIERED_LOG_DEBUG, in: &$0) }
                play("/film", first, fixture)
                second.release()
                first.release()
            }
            #expect(errors.all.isEmpty && all.all.contains { $0.hasPrefix("4") })
        }
    }
}
