import CTieredCache
import Glibc
import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// The rules for hosts, as a program hands them over.
@Suite(.tags(.realTime), .timeLimit(.minutes(5)))
struct RulesTests {
    /// Hands lines over, NULL for nil.
    private func set(_ lines: [String?], of cache: CacheHandle) -> Int64 {
        let copies = lines.map { $0.map { strdup($0) } ?? nil }
        defer { for copy in copies { free(copy) } }
        return tiered_host_rules(cache.pointer, copies.map { UnsafePointer($0) }, copies.count)
    }

    @Test("A stream has the fields and the key of the rules, and a host is left alone")
    func streams() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let lines = ["header=127.0.0.1 Referer: http://x/", "key=127.0.0.1 sign", "exclude=h"]
            #expect(set(lines, of: cache) == 3)
            let urls = [1, 2].map { fixture.origin.url("/film?sign=\($0)") }
            for url in urls {
                #expect(await fixture.host { cache.readAll(url) } == Int(HostedFixture.length))
            }
            let exchanges = fixture.origin.log.exchanges(for: "/film")
            #expect(Set(exchanges.map(\.target)) == ["/film?sign=1"])
            #expect(exchanges.allSatisfy { $0.fields[.referer] == "http://x/" })
            #expect(await fixture.host { tiered_pin(cache.pointer, urls[1], nil, true) } == 0)
            #expect(await fixture.host { tiered_remove(cache.pointer, urls[0], nil) } == 0)
            let excluded = TIERED_E_EXCLUDED.status
            let stream = cache.stream("https://www.h/film")
            #expect(stream.status == excluded && stream.pointer == nil)
            #expect(await fixture.host { cache.job("https://h/film").status } == excluded)
            // The rules are those of the last call.
            #expect(set([], of: cache) == 0)
            let other = cache.stream("https://www.h/film")
            #expect(other.status == 0)
            other.release()
        }
    }

    @Test("The proxy follows the rules, whether they come before it or after it")
    func proxy() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let film = fixture.origin.url("/film")
            #expect(set(["header=* X-Rule: before"], of: cache) == 1)
            #expect(await fixture.host { tiered_proxy_start(cache.pointer) } == 0)
            func url(_ url: String) -> (result: Int64, text: String) {
                text { tiered_proxy_url(cache.pointer, url, $0, $1) }
            }
            let rule = try #require(HTTPField.Name("X-Rule"))
            for value in ["before", "after"] {
                #expect(set(["header=* X-Rule: \(value)"], of: cache) == 1)
                let proxied = url(film + "?" + value).text
                let other = await fixture.host { fixture.open(fixture.directory.appending(value)) }
                let count = await fixture.host { other.readAll(proxied) }
                #expect(count == Int(HostedFixture.length))
                await fixture.host { other.release() }
                let last = try #require(fixture.origin.log.exchanges(for: "/film").last)
                #expect(last.fields[rule] == value)
            }
            let own = url(film).text
            let excluded = TIERED_E_EXCLUDED.number
            #expect(cache.stream(own).status == TIERED_E_EXCLUDED.status)
            #expect(url(own).result == excluded)
            #expect(set(["exclude=127.0.0.1"], of: cache) == 1)
            #expect(url(film).result == excluded)
            #expect(url("http://h/").result > 0)
        }
    }

    @Test("Prefetching leaves out what is left alone, and has the fields of the rules")
    func prefetch() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            #expect(set(["exclude=localhost", "header=* Referer: http://x/"], of: cache) == 2)
            let film = fixture.origin.url("/film")
            let status = film.replacing("127.0.0.1", with: "localhost").withCString { excluded in
                film.withCString { tiered_prefetch(cache.pointer, [excluded, $0], 2, 1000) }
            }
            #expect(status == 0)
            await fixture.origin.waitUntil { $0.bodyBytesWritten >= 1000 }
            let exchanges = fixture.origin.log.exchanges(for: "/film")
            #expect(exchanges.first?.fields[.referer] == "http://x/")
        }
    }

    @Test("A job of an earlier process has the fields of the rules that are set when it goes on")
    func jobs() async throws {
        try await HostedFixture.run { fixture in
            let gate = OriginGate()
            fixture.origin.serve(
                "/film",
                HostedFixture.film,
                .first(1, .wait(for: gate, after: 100_000))
            )
            let cache = await fixture.host { fixture.open() }
            let lines = ["header=127.0.0.1 X-Token: yes"]
            #expect(set(lines, of: cache) == 1)
            let job = await fixture.host { cache.job(fixture.origin.url("/film")) }
            await fixture.origin.waitUntil { !$0.exchanges.isEmpty }
            await fixture.host {
                job.release()
                cache.release()
            }
            gate.open()
            let next = await fixture.host { fixture.open() }
            let found = await fixture.host { () -> JobHandle in
                var list: [OpaquePointer?] = [nil]
                _ = tiered_job_list(next.pointer, &list, 1)
                return JobHandle(list[0])
            }
            #expect(found.info.lacks_credentials == 1)
            #expect(await fixture.host { tiered_job_resume_all(next.pointer) } == 0)
            #expect(set(lines + ["exclude=127.0.0.1"], of: next) == 2)
            #expect(await fixture.host { tiered_job_resume_all(next.pointer) } == 0)
            let excluded = TIERED_E_EXCLUDED.status
            #expect(await fixture.host { tiered_job_resume(found.pointer) } == excluded)
            #expect(set(lines, of: next) == 1)
            #expect(await fixture.host { tiered_job_resume_all(next.pointer) } == 1)
            await fixture.origin.waitUntil { $0.exchanges.count > 1 }
            let token = try #require(HTTPField.Name("X-Token"))
            #expect(fixture.origin.log.exchanges.allSatisfy { $0.fields[token] == "yes" })
            await fixture.host {
                found.release()
                next.release()
            }
        }
    }

    @Test("Bad lines are told by their index, and change nothing")
    func badLines() async throws {
        try await HostedFixture.withCache { _, cache in
            let invalid = TIERED_E_INVALID.number
            #expect(tiered_host_rules(nil, nil, 0) == invalid)
            #expect(tiered_host_rules(cache.pointer, nil, 1) == invalid)
            #expect(tiered_host_rules(cache.pointer, nil, -1) == invalid)
            #expect(set([nil], of: cache) == invalid)
            #expect(set(Array(repeating: "exclude=a", count: 10_001), of: cache) == invalid)
            #expect(set(["exclude=h"], of: cache) == 1)
            for line in ["", "exclude", "header=a X", "key=a", "off=a", "exclude=http://a/"] {
                #expect(set(["exclude=", line, nil], of: cache) == 1)
            }
            let bytes: [CChar] = [CChar(bitPattern: 0xFF), 0]
            let result = bytes.withUnsafeBufferPointer { bytes in
                tiered_host_rules(cache.pointer, [bytes.baseAddress], 1)
            }
            #expect(result == 0)
            #expect(cache.stream("http://h/").status == TIERED_E_EXCLUDED.status)
        }
    }
}
