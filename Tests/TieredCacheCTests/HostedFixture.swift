import CTieredCache
import Glibc
import SystemPackage
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// An origin, a directory and threads of a host, as a program in C has them.
struct HostedFixture: Sendable {
    static let length: Int64 = 1 << 20 + 777
    static let film = OriginResource.generated(length: length, cacheControl: "max-age=600")

    let origin: ScriptedOrigin
    let directory: TemporaryDirectory
    private let threads = IOExecutor(threads: 4, name: "host")

    static func run(_ body: (HostedFixture) async throws -> Void) async throws {
        let fixture = HostedFixture(
            origin: try await ScriptedOrigin.start(),
            directory: try TemporaryDirectory()
        )
        try await body(fixture)
        await fixture.origin.stop()
    }

    /// Runs the same with a cache, which is released at the end.
    static func withCache(
        _ body: (HostedFixture, CacheHandle) async throws -> Void
    ) async throws {
        try await run { fixture in
            let cache = await fixture.host { fixture.open() }
            try await body(fixture, cache)
            await fixture.host { cache.release() }
        }
    }

    /// Runs functions that may block on a thread of the host.
    func host<Value: Sendable>(_ body: @Sendable () -> Value) async -> Value {
        await threads.run(body)
    }

    /// Opens the cache of the directory, or of another one.
    func open(
        _ other: FilePath? = nil,
        _ change: (inout tiered_options) -> Void = { _ in }
    ) -> CacheHandle {
        (other ?? directory.path).string.withCString { path in
            var options = tiered_options()
            options.size = MemoryLayout<tiered_options>.size
            options.directory = path
            change(&options)
            var cache: OpaquePointer?
            guard tiered_cache_open(&options, &cache) == 0 else { return CacheHandle(nil) }
            return CacheHandle(cache)
        }
    }
}

/// A handle of a cache.
struct CacheHandle: @unchecked Sendable {
    // Unchecked: a pointer that is a number, and never followed; the header lets any thread use it,
    // which is what is tested.
    let pointer: OpaquePointer?

    init(_ pointer: OpaquePointer?) { self.pointer = pointer }

    func release() { tiered_cache_release(pointer) }

    /// A stream; nil with the status where there is none.
    func stream(
        _ url: String,
        _ change: (inout tiered_request) -> Void = { _ in }
    ) -> StreamHandle {
        withRequest(url, change) { request in
            var stream: OpaquePointer?
            let status = tiered_stream_new(pointer, request, &stream)
            return StreamHandle(stream, status: status)
        }
    }

    /// The number of bytes that a stream of the URL brings.
    func readAll(_ url: String) -> Int {
        let stream = self.stream(url)
        defer { stream.release() }
        return stream.all().bytes.count
    }

    func job(_ url: String) -> JobHandle {
        let plain: (inout tiered_request) -> Void = { _ in }
        return withRequest(url, plain) { request in
            var job: OpaquePointer?
            let status = tiered_job_start(pointer, request, &job)
            return JobHandle(job, status: status)
        }
    }

    private func withRequest<Value>(
        _ url: String,
        _ change: (inout tiered_request) -> Void,
        _ body: (UnsafePointer<tiered_request>) -> Value
    ) -> Value {
        url.withCString { url in
            var request = tiered_request()
            request.size = MemoryLayout<tiered_request>.size
            request.url = url
            change(&request)
            return body(&request)
        }
    }

    var statistics: tiered_statistics {
        var result = tiered_statistics()
        result.size = MemoryLayout<tiered_statistics>.size
        _ = tiered_cache_statistics(pointer, &result)
        return result
    }
}

/// A handle of a stream.
struct StreamHandle: @unchecked Sendable {
    // Unchecked: a number, as in `CacheHandle`.
    let pointer: OpaquePointer?
    /// What made it.
    let status: CInt

    init(_ pointer: OpaquePointer?, status: CInt = 0) {
        (self.pointer, self.status) = (pointer, status)
    }

    func release() { tiered_stream_release(pointer) }

    /// What a function that reads gives, and the bytes.
    struct Got: Equatable, Sendable {
        var result: Int64
        var bytes: [UInt8] = []
    }

    private func got(
        _ count: Int,
        _ read: (UnsafeMutableRawPointer?, Int) -> Int64
    ) -> Got {
        var bytes = [UInt8](repeating: 0, count: count)
        let result = bytes.withUnsafeMutableBytes { read($0.baseAddress, count) }
        return Got(result: result, bytes: Array(bytes.prefix(Int(max(0, result)))))
    }

    func read(_ count: Int) -> Got { got(count) { tiered_read(pointer, $0, $1) } }

    func tryRead(_ count: Int) -> Got { got(count) { tiered_try_read(pointer, $0, $1) } }

    func read(at offset: Int64, _ count: Int) -> Got {
        got(count) { tiered_read_at(pointer, offset, $0, $1) }
    }

    func readFull(at offset: Int64, _ count: Int) -> Got {
        got(count) { tiered_read_full_at(pointer, offset, $0, $1) }
    }

    /// All to the end from the cursor on; ends at an error.
    func all() -> Got {
        var all = Got(result: 0)
        while true {
            let next = read(100_000)
            guard next.result > 0 else {
                all.result = next.result
                return all
            }
            all.bytes += next.bytes
        }
    }

    var stored: [Range<Int64>] {
        var bounds = [Int64](repeating: -1, count: 64)
        let count = Int(tiered_stream_stored(pointer, &bounds, 32))
        return (0..<max(0, count)).map { bounds[2 * $0]..<bounds[2 * $0 + 1] }
    }

    func field(_ name: String) -> (result: Int64, text: String) {
        text { tiered_stream_field(pointer, name, $0, $1) }
    }

    var error: (result: Int64, text: String) {
        text { Int64(tiered_stream_error(pointer, $0, $1)) }
    }

    /// Whether poll(2) says that there is something to read; waits for that for ever, if `waits`.
    func isReadable(waits: Bool = false) -> Bool {
        var entry = pollfd(fd: tiered_stream_fd(pointer), events: Int16(POLLIN), revents: 0)
        while true {
            let count = poll(&entry, 1, waits ? -1 : 0)
            if count >= 0 { return count == 1 && entry.revents == Int16(POLLIN) }
        }
    }
}

/// A handle of a job.
struct JobHandle: @unchecked Sendable {
    // Unchecked: a number, as in `CacheHandle`.
    let pointer: OpaquePointer?
    let status: CInt

    init(_ pointer: OpaquePointer?, status: CInt = 0) {
        (self.pointer, self.status) = (pointer, status)
    }

    func release() { tiered_job_release(pointer) }

    var info: tiered_job_info {
        var info = tiered_job_info()
        info.size = MemoryLayout<tiered_job_info>.size
        _ = tiered_job_status(pointer, &info)
        return info
    }

    var identifier: String { text { tiered_job_identifier(pointer, $0, $1) }.text }
}

/// A log function of a host, which keeps its lines.
final class LogLines: Sendable {
    private let kept = Guarded<[String]>([])

    var all: [String] { kept.withLock { $0 } }

    /// Opens with this log.
    func want(_ level: Int, in options: inout tiered_options) {
        options.log_level = Int32(level)
        options.log_context = Unmanaged.passUnretained(self).toOpaque()
        options.log = { context, level, line in
            guard let context, let line else { return }
            let text = "\(level) \(String(cString: line))"
            let lines = Unmanaged<LogLines>.fromOpaque(context).takeUnretainedValue()
            lines.kept.withLock { $0.append(text) }
        }
    }
}

/// The text that a function writes.
func text(
    _ write: (UnsafeMutablePointer<CChar>?, Int) -> Int64
) -> (result: Int64, text: String) {
    var buffer = [CChar](repeating: 1, count: 1024)
    let result = write(&buffer, buffer.count)
    guard let end = buffer.firstIndex(of: 0) else { return (result, "") }
    return (result, String(decoding: buffer[..<end].map { UInt8(bitPattern: $0) }, as: UTF8.self))
}

extension tiered_status {
    var number: Int64 { Int64(rawValue) }
    var status: CInt { CInt(rawValue) }
}
