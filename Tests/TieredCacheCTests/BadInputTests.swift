import CTieredCache
import Glibc
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// What a program may get wrong gives a status.
@Suite(.tags(.realTime), .timeLimit(.minutes(5)))
struct BadInputTests {
    private let invalid = TIERED_E_INVALID.status

    @Test("NULL for each handle, and for each pointer")
    func null() async throws {
        try await HostedFixture.withCache { fixture, cache in
            #expect(tiered_cache_open(nil, nil) == invalid)
            #expect(tiered_stream_new(cache.pointer, nil, nil) == invalid)
            for (handle, status) in [(nil, invalid), (cache.pointer, 0)] as [(OpaquePointer?, CInt)]
            {
                #expect(tiered_storage_status(handle, nil, 0) == status)
                #expect(tiered_prefetch(handle, nil, 0, 0) == status)
                #expect(tiered_prefetch_reserve(handle, -1) == status)
                #expect(tiered_prefetch_reserve(handle, -2) == invalid)
                #expect(tiered_prefetch(handle, nil, 1, 0) == invalid)
                #expect(tiered_prefetch(handle, nil, 0, -1) == invalid)
                #expect(tiered_cache_statistics(handle, nil) == invalid)
                #expect(tiered_storage_status(handle, nil, 1) == invalid)
                #expect(tiered_pin(handle, nil, nil, true) == invalid)
                #expect(tiered_remove(handle, nil, nil) == invalid)
                #expect(tiered_file_path(handle, nil, nil, nil, 0) == Int64(invalid))
                #expect(tiered_job_start(handle, nil, nil) == invalid)
                #expect(tiered_job_find(handle, nil, nil) == invalid)
                #expect(tiered_job_list(handle, nil, 1) == Int64(invalid))
                #expect(tiered_proxy_url(handle, nil, nil, 0) == Int64(invalid))
            }
            #expect(tiered_proxy_start(nil) == invalid)
            #expect(tiered_job_resume_all(nil) == Int64(invalid))
            noStream()
            noJob()
            tiered_cache_release(nil)
            #expect(tiered_cache_retain(nil) == nil)
        }
    }

    private func noStream() {
        var byte: UInt8 = 0
        #expect(tiered_stream_prepare(nil) == invalid)
        #expect(tiered_read(nil, &byte, 1) == Int64(invalid))
        #expect(tiered_read_at(nil, 0, &byte, 1) == Int64(invalid))
        #expect(tiered_read_full_at(nil, 0, &byte, 1) == Int64(invalid))
        #expect(tiered_try_read(nil, &byte, 1) == Int64(invalid))
        #expect(tiered_stream_fd(nil) == invalid)
        #expect(tiered_seek(nil, 0, SEEK_SET) == Int64(invalid))
        #expect(tiered_size(nil) == Int64(invalid))
        #expect(!tiered_is_seekable(nil))
        #expect(tiered_stream_error(nil, nil, 0) == invalid)
        #expect(tiered_stream_http_status(nil) == invalid)
        #expect(tiered_stream_field(nil, "A", nil, 0) == Int64(invalid))
        #expect(tiered_stream_stored(nil, nil, 0) == Int64(invalid))
        #expect(tiered_stream_retain(nil) == nil)
        tiered_cancel(nil)
        tiered_interrupt(nil)
        tiered_resume(nil)
        tiered_stream_release(nil)
    }

    private func noJob() {
        #expect(tiered_job_identifier(nil, nil, 0) == Int64(invalid))
        #expect(tiered_job_url(nil, nil, 0) == Int64(invalid))
        #expect(tiered_job_status(nil, nil) == invalid)
        #expect(tiered_job_error(nil, nil, 0) == invalid)
        for command in [
            tiered_job_pause, tiered_job_resume, tiered_job_cancel, tiered_job_remove,
        ] {
            #expect(command(nil) == invalid)
        }
        #expect(tiered_job_retain(nil) == nil)
        tiered_job_release(nil)
    }

    @Test("Requests that make no sense give no stream")
    func requests() async throws {
        try await HostedFixture.withCache { _, cache in
            let url = "http://127.0.0.1:1/film"
            let changes: [(inout tiered_request) -> Void] = [
                { $0.flags = 32 }, { $0.flags = 1 << 31 },
                { $0.flags = UInt32(TIERED_CACHE_ONLY | TIERED_RELOAD) },
                { $0.deadline_ms = -2 }, { $0.deadline_ms = .min }, { $0.read_ahead = -2 },
                { $0.size = 0 }, { $0.size = 7 }, { $0.size = 12 }, { $0.size = 4097 },
                { $0.size = -1 },
                { $0.size = MemoryLayout<Int>.size }, { $0.url = nil },
            ]
            for change in changes { #expect(cache.stream(url, change).status == invalid) }
            for url in ["", "film", "/film", "ftp://a/b", "http://", "http://a b/", "file:///etc"] {
                #expect(cache.stream(url).status == invalid)
            }
            let bytes: [CChar] = [104, -1, -2, 0]
            #expect(cache.stream(url) { $0.url = UnsafePointer(bytes.pinned) }.status == invalid)
            for line in ["", "name", ": value", "na me: value", "Name: a\u{1}b", "Name: a\nB: c"] {
                line.withCString { line in
                    let lines: [UnsafePointer<CChar>?] = [line, nil]
                    lines.withUnsafeBufferPointer { lines in
                        let stream = cache.stream(url) { $0.fields = lines.baseAddress }
                        #expect(stream.status == invalid)
                    }
                }
            }
        }
    }

    @Test("Counts and offsets that make no sense")
    func counts() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let stream = cache.stream(fixture.origin.url("/film"))
            var bytes = [UInt8](repeating: 0, count: 16)
            for count in [0, -1, Int.min] {
                #expect(tiered_read(stream.pointer, &bytes, count) == Int64(invalid))
                #expect(tiered_read_at(stream.pointer, 0, &bytes, count) == Int64(invalid))
                #expect(tiered_read_full_at(stream.pointer, 0, &bytes, count) == Int64(invalid))
                #expect(tiered_try_read(stream.pointer, &bytes, count) == Int64(invalid))
            }
            #expect(tiered_read(stream.pointer, nil, 1) == Int64(invalid))
            for offset in [-1, Int64.min] {
                #expect(tiered_read_at(stream.pointer, offset, &bytes, 1) == Int64(invalid))
                #expect(tiered_read_full_at(stream.pointer, offset, &bytes, 1) == Int64(invalid))
            }
            #expect(await fixture.host { stream.read(at: .max, 8) }.result == 0)
            #expect(tiered_stream_field(stream.pointer, "a b", nil, 0) == Int64(invalid))
            #expect(tiered_stream_field(stream.pointer, nil, nil, 0) == Int64(invalid))
            #expect(tiered_stream_stored(stream.pointer, nil, 1) == Int64(invalid))
            #expect(tiered_stream_stored(stream.pointer, nil, -1) == Int64(invalid))
            stream.release()
        }
    }

    @Test("Options that make no sense open no cache; a directory that cannot be used does")
    func options() async throws {
        try await HostedFixture.run { fixture in
            let changes: [(inout tiered_options) -> Void] = [
                { $0.size = 0 }, { $0.memory_limit = -1 }, { $0.disk_limit = -1 },
                { $0.minimum_free_disk = -2 }, { $0.maximum_downloads = -1 },
                { $0.log_level = 6 }, { $0.log_level = -1 },
            ]
            for change in changes {
                var options = tiered_options()
                options.size = MemoryLayout<tiered_options>.size
                change(&options)
                var cache: OpaquePointer?
                #expect(tiered_cache_open(&options, &cache) == invalid && cache == nil)
            }
            let status = await fixture.host {
                "/proc/none".withCString { path -> CInt in
                    var options = tiered_options()
                    options.size = MemoryLayout<tiered_options>.size
                    options.directory = path
                    var cache: OpaquePointer?
                    guard tiered_cache_open(&options, &cache) == 0 else { return 1 }
                    defer { tiered_cache_release(cache) }
                    return tiered_storage_status(cache, nil, 0)
                }
            }
            #expect(status == TIERED_E_STORAGE.status)
        }
    }

    @Test("A struct of an older version is short, one of a newer version long and 0 at its end")
    func sizes() async throws {
        try await HostedFixture.withCache { fixture, cache in
            let own = MemoryLayout<tiered_request>.size
            let text = Array("http://127.0.0.1:1/film".utf8CString)
            text.withUnsafeBufferPointer { url in
                for (size, last, status) in [
                    (16, 0, 0), (own, 0, 0), (own + 64, 0, 0), (4096, 0, 0), (own + 64, 1, invalid),
                ] as [(Int, UInt8, CInt)] {
                    let memory = UnsafeMutableRawPointer.allocate(byteCount: 4096, alignment: 16)
                    defer { memory.deallocate() }
                    memory.initializeMemory(as: UInt8.self, repeating: 0, count: 4096)
                    // Behind the size nothing is looked at.
                    memory.storeBytes(of: 9, toByteOffset: min(size, 4095), as: UInt8.self)
                    memory.storeBytes(of: last, toByteOffset: size - 1, as: UInt8.self)
                    memory.storeBytes(of: size, as: Int.self)
                    memory.storeBytes(
                        of: url.baseAddress,
                        toByteOffset: 8,
                        as: UnsafePointer<CChar>?.self
                    )
                    var stream: OpaquePointer?
                    let request = memory.assumingMemoryBound(to: tiered_request.self)
                    #expect(tiered_stream_new(cache.pointer, request, &stream) == status)
                    tiered_stream_release(stream)
                }
            }
            await statistics(fixture, cache)
        }
    }

    private func statistics(_ fixture: HostedFixture, _ cache: CacheHandle) async {
        let filled = await fixture.host {
            [0, 8, 16, 4096, 4097].map { size in
                let memory = UnsafeMutableRawPointer.allocate(byteCount: 5000, alignment: 16)
                defer { memory.deallocate() }
                memory.initializeMemory(as: UInt8.self, repeating: 9, count: 5000)
                memory.storeBytes(of: size, as: Int.self)
                let status = tiered_cache_statistics(
                    cache.pointer,
                    memory.assumingMemoryBound(to: tiered_statistics.self)
                )
                let kept = memory.load(as: Int.self) == size
                let after = memory.load(fromByteOffset: max(size, 8), as: UInt8.self)
                return kept && after == 9 ? status : 1
            }
        }
        #expect(filled == [invalid, 0, 0, 0, invalid])
    }
}

extension [CChar] {
    /// A copy that stays for as long as the process.
    fileprivate var pinned: UnsafeMutablePointer<CChar> {
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: count)
        copy.initialize(from: self, count: count)
        return copy
    }
}
