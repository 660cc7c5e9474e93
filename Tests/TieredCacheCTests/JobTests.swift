import CTieredCache
import Glibc
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheC

/// Downloads that survive the process.
@Suite(.tags(.realTime), .timeLimit(.minutes(5)))
struct JobTests {
    /// Waits until a job has a state; it has one within the time limit of the suite.
    private func wait(_ job: JobHandle, for states: [tiered_job_state]) -> tiered_job_info {
        while true {
            let info = job.info
            if states.contains(where: { Int32($0.rawValue) == info.state }) { return info }
            sched_yield()
        }
    }

    @Test("A job brings all, is found and listed, and is forgotten when it is removed")
    func download() async throws {
        try await HostedFixture.withCache { fixture, cache in
            fixture.origin.serve("/film", HostedFixture.film)
            let url = fixture.origin.url("/film")
            let job = await fixture.host { cache.job(url) }
            #expect(job.status == 0 && job.identifier.utf8.count == 16)
            #expect(text { tiered_job_url(job.pointer, $0, $1) }.text == url)
            let end = await fixture.host { wait(job, for: [TIERED_JOB_FINISHED]) }
            #expect(end.bytes == HostedFixture.length && end.total == HostedFixture.length)
            #expect(end.status == 0 && end.http_status == 0 && end.lacks_credentials == 0)
            let identifier = job.identifier
            let found = await fixture.host { () -> (Int64, Int64, CInt, CInt) in
                var list: [OpaquePointer?] = [nil, nil]
                let all = tiered_job_list(cache.pointer, &list, 2)
                let first = text { tiered_job_identifier(list[0], $0, $1) }.text
                for handle in list { tiered_job_release(handle) }
                var other: OpaquePointer?
                let status = tiered_job_find(cache.pointer, identifier, &other)
                let removed = tiered_job_remove(other)
                tiered_job_release(other)
                let gone = tiered_job_find(cache.pointer, identifier, &other)
                let bad = tiered_job_find(cache.pointer, "xyz", &other)
                return (
                    first == identifier ? all : -1, tiered_job_list(cache.pointer, nil, 0),
                    status + removed, gone == TIERED_E_NOT_FOUND.status ? bad : 1
                )
            }
            #expect(found == (1, 0, 0, TIERED_E_INVALID.status))
            #expect(tiered_job_retain(job.pointer) == job.pointer)
            job.release()
            job.release()
            #expect(tiered_job_pause(job.pointer) == TIERED_E_INVALID.status)
        }
    }

    @Test("A job is paused, resumed, cancelled, and goes on in the next process")
    func commands() async throws {
        try await HostedFixture.run { fixture in
            let gate = OriginGate()
            let silent = OriginBehaviour.wait(for: gate, after: 100_000)
            fixture.origin.serve("/film", HostedFixture.film, OriginScript(silent))
            let url = fixture.origin.url("/film")
            let cache = await fixture.host { fixture.open() }
            let job = await fixture.host { cache.job(url) }
            await fixture.origin.waitUntil { !$0.exchanges.isEmpty }
            let states = await fixture.host { () -> [CInt] in
                [
                    tiered_job_pause(job.pointer), CInt(job.info.state),
                    tiered_job_cancel(job.pointer), CInt(job.info.state),
                    tiered_job_resume(job.pointer),
                ]
            }
            #expect(states == [0, 3, 0, 4, 0])
            await fixture.host {
                job.release()
                cache.release()
            }
            gate.open()
            let next = await fixture.host { fixture.open() }
            let resumed = await fixture.host { () -> Int64 in
                let count = tiered_job_resume_all(next.pointer)
                var list: [OpaquePointer?] = [nil]
                _ = tiered_job_list(next.pointer, &list, 1)
                let job = JobHandle(list[0])
                _ = wait(job, for: [TIERED_JOB_FINISHED])
                job.release()
                return count
            }
            #expect(resumed == 1)
            await fixture.host { next.release() }
        }
    }

    @Test("A job that fails says why")
    func failure() async throws {
        try await HostedFixture.withCache { fixture, cache in
            let job = await fixture.host { cache.job(fixture.origin.url("/none")) }
            let end = await fixture.host { wait(job, for: [TIERED_JOB_FAILED]) }
            #expect(end.status == TIERED_E_HTTP.status && end.http_status == 404)
            #expect(end.total == TIERED_E_UNKNOWN.number)
            let why = text { Int64(tiered_job_error(job.pointer, $0, $1)) }
            #expect(why.result == TIERED_E_HTTP.number && why.text.contains("404"))
            job.release()
        }
    }
}
