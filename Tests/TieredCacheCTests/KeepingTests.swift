import CTieredCache
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// What plays next, what stays, and players that take URLs alone.
@Suite(.tags(.realTime), .timeLimit(.minutes(5)))
struct KeepingTests {
    @Test("An entry is pinned, has a file, and is removed, by its URL and by its key")
    func entries() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let url = fixture.origin.url("/film")
            let path = {
                await fixture.host { text { tiered_file_path(cache.pointer, url, nil, $0, $1) } }
            }
            #expect(await path().result == TIERED_E_NOT_CACHED.number)
            #expect(
                await fixture.host { tiered_pin(cache.pointer, url, nil, true) }
                    == TIERED_E_NOT_FOUND.status
            )
            #expect(await fixture.host { cache.readAll(url) } == Int(HostedFixture.length))
            #expect(await fixture.host { tiered_pin(cache.pointer, url, nil, true) } == 0)
            #expect(await fixture.host { tiered_pin(cache.pointer, url, nil, false) } == 0)
            let file = await path()
            #expect(file.result == Int64(file.text.utf8.count))
            #expect(file.text.hasPrefix(fixture.directory.path.string))
            let cut = await fixture.host { () -> (Int64, UInt8) in
                var buffer = [CChar](repeating: 7, count: 6)
                let result = tiered_file_path(cache.pointer, url, nil, &buffer, 5)
                return (result, UInt8(buffer[4] == 0 && buffer[5] == 7 ? 1 : 0))
            }
            #expect(cut.0 == file.result && cut.1 == 1)
            #expect(
                await fixture.host { tiered_remove(cache.pointer, url, "other") }
                    == TIERED_E_NOT_FOUND.status
            )
            #expect(await fixture.host { tiered_remove(cache.pointer, url, nil) } == 0)
            #expect(
                await fixture.host { tiered_remove(cache.pointer, url, nil) }
                    == TIERED_E_NOT_FOUND.status
            )
        }
    }

    @Test("Statistics count what happened and what is stored")
    func statistics() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let url = fixture.origin.url("/film")
            for _ in 0..<2 { _ = await fixture.host { cache.readAll(url) } }
            // A stream has its last byte before its download has ended, and is counted. On a slow
            // machine there may be two: one that paused for the reader, and the one behind it.
            var counted = await fixture.host { cache.statistics }
            while counted.bytes_from_origin < HostedFixture.length {
                await Task.yield()
                counted = await fixture.host { cache.statistics }
            }
            #expect(counted.bytes_from_origin == HostedFixture.length)
            #expect(counted.bytes_from_disk + counted.bytes_from_memory >= HostedFixture.length)
            #expect(counted.misses >= 1 && counted.disk_hits + counted.memory_hits >= 1)
            #expect(counted.downloads_started >= 1 && counted.entries == 1)
            #expect(counted.disk_bytes >= HostedFixture.length && counted.disk_limit > 0)
        }
    }

    @Test("Prefetching brings the beginnings of a list, and no list ends it")
    func prefetch() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let url = fixture.origin.url("/film")
            let begin = { (bytes: Int64) in
                url.withCString { url in
                    let urls: [UnsafePointer<CChar>?] = [url]
                    return tiered_prefetch(cache.pointer, urls, 1, bytes)
                }
            }
            #expect(tiered_prefetch_reserve(cache.pointer, 0) == 0)
            #expect(begin(100_000) == 0)
            #expect(tiered_prefetch_reserve(cache.pointer, 60_000) == 0)
            await fixture.origin.waitUntil { $0.bodyBytesWritten >= 100_000 }
            #expect(tiered_prefetch(cache.pointer, nil, 0, 0) == 0)
            #expect(begin(.max) == 0)
            let text = "no URL"
            let bad = text.withCString { text in
                tiered_prefetch(cache.pointer, [text], 1, 0)
            }
            #expect(bad == TIERED_E_INVALID.status)
        }
    }

    @Test("The proxy gives URLs once it runs, and a second start changes nothing")
    func proxy() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let film = fixture.origin.url("/film")
            let url = { text { tiered_proxy_url(cache.pointer, film, $0, $1) } }
            #expect(url().result == TIERED_E_UNKNOWN.number)
            #expect(await fixture.host { tiered_proxy_start(cache.pointer) } == 0)
            let first = url()
            #expect(first.text.hasPrefix("http://127.0.0.1:"))
            #expect(first.result == Int64(first.text.utf8.count))
            #expect(await fixture.host { tiered_proxy_start(cache.pointer) } == 0)
            #expect(url().text == first.text)
            #expect(
                tiered_proxy_url(cache.pointer, "no URL", nil, 0) == TIERED_E_INVALID.number
            )
            // The library is a client of its own proxy here.
            let other = try TemporaryDirectory()
            let count = await fixture.host { () -> Int in
                let second = other.path.string.withCString { path -> CacheHandle in
                    var options = tiered_options()
                    options.size = MemoryLayout<tiered_options>.size
                    options.directory = path
                    var cache: OpaquePointer?
                    _ = tiered_cache_open(&options, &cache)
                    return CacheHandle(cache)
                }
                defer { second.release() }
                return second.readAll(first.text)
            }
            #expect(count == Int(HostedFixture.length))
        }
    }

    @Test("A cache in memory alone stores there, and is another one at each open")
    func memoryOnly() async throws {
        try await HostedFixture.run { fixture in
            fixture.origin.serve("/film", .generated(length: 1000, cacheControl: "max-age=600"))
            let url = fixture.origin.url("/film")
            let counts = await fixture.host { () -> [Int] in
                "".withCString { empty in
                    var options = tiered_options()
                    options.size = MemoryLayout<tiered_options>.size
                    options.directory = empty
                    return (0..<2).map { _ in
                        var cache: OpaquePointer?
                        guard tiered_cache_open(&options, &cache) == 0 else { return -1 }
                        defer { tiered_cache_release(cache) }
                        guard tiered_storage_status(cache, nil, 0) == 0 else { return -2 }
                        return CacheHandle(cache).readAll(url)
                    }
                }
            }
            #expect(counts == [1000, 1000])
            #expect(fixture.origin.log.exchanges.count == 2)
        }
    }
}
