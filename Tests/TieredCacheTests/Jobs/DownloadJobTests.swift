import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct DownloadJobTests {
    private static let length: Int64 = 3 << 20

    private func film() -> OriginResource {
        .generated(length: Self.length, cacheControl: "max-age=3600")
    }

    private func wait(
        for handle: DownloadHandle,
        until condition: (DownloadStatus) -> Bool
    ) async -> DownloadStatus {
        for await status in handle.progress where condition(status) { return status }
        return handle.status
    }

    @Test("A job fetches, reports, finishes, and is kept until it is acknowledged")
    func finishes() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film())
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let handle = try await cache.downloads.start(request)
                let status = try await handle.wait()
                #expect(status.state == .finished)
                #expect(status.bytes == Self.length && status.total == Self.length)
                #expect(status.bytesFromOrigin == Self.length)
                #expect(status.fraction == 1)
            }
            try await fixture.withCache { cache in
                let found = try #require(try await cache.downloads.all().first)
                #expect(found.status.state == .finished)
                #expect(found.status.bytes == Self.length)
                #expect(try await firstDifference(cache.data(for: request), film().allBytes) == nil)
                await found.acknowledge()
                #expect(try await cache.downloads.all().isEmpty)
            }
            let left = try await fixture.withCache { try await $0.downloads.all().count }
            #expect(left == 0)
            #expect(fixture.origin.log.bodyBytesWritten == Self.length)
        }
    }

    @Test("Paused, found paused after a restart, resumed with Range, no byte twice")
    func pausesAndResumes() async throws {
        try await CacheFixture.run { fixture in
            let gate = OriginGate()
            fixture.origin.serve("/film", film(), .first(1, .wait(for: gate, after: 1 << 20)))
            let request = try fixture.request("/film")
            let id = try await fixture.withCache { cache in
                let handle = try await cache.downloads.start(request)
                _ = await wait(for: handle) { $0.bytes == 1 << 20 }
                await handle.pause()
                #expect(handle.status.state == .paused)
                // A second order for the same key is the same job, and goes on.
                let same = try #require(try await cache.downloads.find(handle.id))
                #expect(same.id == handle.id)
                return handle.id
            }
            gate.open()
            try await fixture.withCache { cache in
                let handle = try #require(try await cache.downloads.find(id))
                #expect(handle.status.state == .paused)
                #expect(handle.status.bytes == 1 << 20 && handle.status.total == Self.length)
                #expect(try await cache.downloads.resumeAll().downloads.isEmpty)
                await handle.resume()
                let status = try await handle.wait()
                #expect(status.bytesFromCache == 1 << 20)
                #expect(status.source == .network)
                #expect(status.bytesFromOrigin == Self.length)
                #expect(try await firstDifference(cache.data(for: request), film().allBytes) == nil)
            }
            let exchanges = fixture.origin.log.exchanges
            #expect(exchanges.map(\.status) == [200, 206])
            #expect(exchanges.last?.fields[.range] == "bytes=1048576-3145727")
        }
    }

    @Test("What ran when the cache was shut down goes on by itself afterwards")
    func continues() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film(), .first(1, .stall(after: 1 << 20)))
            fixture.origin.serve("/lost", OriginScript(.status(404)))
            let requests = [try fixture.request("/film"), try fixture.request("/lost")]
            try await fixture.withCache { cache in
                let batch = try await cache.downloads.start(requests)
                _ = await wait(for: batch.downloads[0]) { $0.bytes == 1 << 20 }
                await #expect(throws: CacheError.self) { try await batch.downloads[1].wait() }
            }
            try await fixture.withCache { cache in
                let all = try await cache.downloads.all()
                #expect(all.map(\.status.state.name) == ["queued", "failed"])
                let batch = try await cache.downloads.resumeAll()
                #expect(batch.downloads.map(\.id) == [all[0].id])
                let status = await batch.wait()
                #expect(status.finished == 1 && status.failed == 0)
                #expect(status.bytes == Self.length && status.total == Self.length)
                #expect(
                    try await firstDifference(cache.data(for: requests[0]), film().allBytes) == nil
                )
            }
        }
    }

    @Test("Cancelling keeps the bytes or drops them")
    func cancels() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/a", film(), OriginScript(.stall(after: 1 << 20)))
            fixture.origin.serve("/b", film(), OriginScript(.stall(after: 1 << 20)))
            let requests = [try fixture.request("/a"), try fixture.request("/b")]
            try await fixture.withCache { cache in
                let batch = try await cache.downloads.start(requests)
                for handle in batch.downloads {
                    _ = await wait(for: handle) { $0.bytes == 1 << 20 }
                }
                await batch.downloads[0].cancel()
                await batch.downloads[1].cancel(keepingBytes: false)
                #expect(batch.status.failed == 2)
                let kept = try #require(try await cache.entry(for: requests[0]))
                #expect(kept.storedBytes == 1 << 20)
                #expect(try await cache.entry(for: requests[1]) == nil)
                await #expect(throws: CacheError.self) { try await batch.downloads[0].wait() }
            }
            try await fixture.withCache { cache in
                let all = try await cache.downloads.all()
                #expect(all.map(\.status.state) == [.cancelled, .cancelled])
                await DownloadBatch(all).remove()
                #expect(try await cache.downloads.all().isEmpty)
            }
        }
    }

    @Test("The more urgent job gets the next slot, also when it becomes urgent while it waits")
    func priorities() async throws {
        try await CacheFixture.run { fixture in
            let gate = OriginGate()
            fixture.origin.serve("/0", film(), .first(1, .wait(for: gate, after: 1000)))
            let (queued, report) = AsyncStream<Void>.makeStream()
            for name in ["/1", "/2", "/3"] { fixture.origin.serve(name, film()) }
            try await fixture.withCache {
                $0.maximumDownloads = 1
            } _: { cache in
                var handles: [DownloadHandle] = []
                for name in ["/0", "/1", "/2", "/3"] {
                    var request = try fixture.request(name)
                    request.priority = .background
                    request.onNotice = { if $0 == .queued { report.yield() } }
                    handles.append(try await cache.downloads.start(request))
                    if name == "/0" { await fixture.origin.waitUntil { !$0.exchanges.isEmpty } }
                }
                var notices = queued.makeAsyncIterator()
                // All of them are in the queue, and the first has the slot.
                for _ in 0..<4 { _ = await notices.next() }
                #expect(handles.dropFirst().allSatisfy { $0.status.state == .queued })
                await handles[3].setPriority(.playing)
                gate.open()
                for handle in handles { try await handle.wait() }
            }
            // In which order the two others arrived in the queue is a matter of threads.
            let order = fixture.origin.log.exchanges.map(\.path)
            #expect(order.prefix(2) == ["/0", "/3"] && Set(order.suffix(2)) == ["/1", "/2"])
        }
    }

    @Test("Credentials are not written down; a resumed job gets them from its new request")
    func credentials() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film(), .first(1, .stall(after: 1 << 20)))
            var request = try fixture.request("/film")
            let key = try #require(HTTPField.Name("X-Api-Key"))
            request.fields[.authorization] = "Bearer s3cret"
            request.fields[key] = "s3cret"
            request.options.insert(.avoidsExpensiveNetworks)
            try await fixture.withCache { cache in
                let handle = try await cache.downloads.start(request)
                #expect(!handle.status.lacksCredentials)
                await fixture.origin.waitUntil { !$0.exchanges.isEmpty }
                await handle.pause()
            }
            try await fixture.withCache { cache in
                let handle = try #require(try await cache.downloads.all().first)
                #expect(handle.status.lacksCredentials)
                // It waits for them: without them the origin would only refuse it.
                #expect(try await cache.downloads.resumeAll().downloads.isEmpty)
                #expect(handle.request.options.contains(.avoidsExpensiveNetworks))
                await handle.resume(with: request)
                try await handle.wait()
                #expect(!handle.status.lacksCredentials)
            }
            let sent = fixture.origin.log.exchanges.map(\.fields)
            #expect(sent.count == 2)
            #expect(
                sent.allSatisfy { $0[.authorization] == "Bearer s3cret" && $0[key] == "s3cret" }
            )
        }
    }

    @Test("Fields of rules are not written down; a resumed job has them from the rules")
    func fieldsOfRules() async throws {
        try await CacheFixture.run { fixture in
            let other = fixture.origin.url("/film").replacing("127.0.0.1", with: "localhost")
            fixture.origin.serve("/moved", OriginScript(.redirect(to: other)))
            fixture.origin.serve("/film", film(), .first(1, .stall(after: 1 << 20)))
            let (token, own) = (HTTPField.Name("X-Token"), HTTPField.Name("X-Own"))
            var rules = HostRules()
            try rules.add("header=127.0.0.1 X-Token: s3cret")
            var request = try fixture.request("/moved")
            request.fields[try #require(own)] = "1"
            request.firstOriginFields = [try #require(own)]
            rules.apply(to: &request)
            try await fixture.withCache { [request] cache in
                let handle = try await cache.downloads.start(request)
                await fixture.origin.waitUntil { !$0.exchanges(for: "/film").isEmpty }
                #expect(!handle.status.lacksCredentials)
            }
            try await fixture.withCache { cache in
                let handle = try #require(try await cache.downloads.all().first)
                #expect(handle.status.lacksCredentials)
                #expect(handle.request.fields[try #require(token)] == nil)
                var others = HostRules()
                try others.add("header=localhost X-Token: other")
                #expect(try await cache.downloads.resumeAll().downloads.isEmpty)
                #expect(try await cache.downloads.resumeAll(by: others).downloads.isEmpty)
                #expect(try await cache.downloads.resumeAll(by: rules).downloads.count == 1)
                try await handle.wait()
            }
            let sent = fixture.origin.log.exchanges.map { ($0.path, $0.fields) }
            #expect(sent.count == 4)
            for (path, fields) in sent {
                let isFirst = path == "/moved"
                #expect(fields[try #require(token)] == (isFirst ? "s3cret" : nil))
                #expect(fields[try #require(own)] == (isFirst ? "1" : nil))
            }
        }
    }

    @Test("Records count against the limit, and a damaged one hides no other")
    func records() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", OriginScript(.status(404)))
            try await fixture.withCache { cache in
                let before = try await cache.usage().bytes
                let handle = try await cache.downloads.start(try fixture.request("/film"))
                await #expect(throws: CacheError.self) { try await handle.wait() }
                #expect(try await cache.usage().bytes > before)
                await handle.remove()
                #expect(try await cache.usage().bytes == before)
                let again = try await cache.downloads.start(try fixture.request("/film"))
                await #expect(throws: CacheError.self) { try await again.wait() }
            }
            let jobs = fixture.directory.appending("jobs")
            let made = FileManager.default.createFile(
                atPath: jobs.appending("00000000000000ff.job").string,
                contents: Data([1, 2, 3])
            )
            #expect(made)
            let found = try await fixture.withCache { try await $0.downloads.all().count }
            #expect(found == 1)
        }
    }
}
