import Dispatch
import FoundationEssentials
import HTTPCaching
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Row 27: the end of a comparison, and what goes on beside it.
@Suite("The end of a comparison", .timeLimit(.minutes(1)))
struct BodyConclusionTests {
    private typealias Fixture = DigestFixture

    private let fixture = DigestFixture()
    private var time: ManualTimeSource { fixture.time }

    @Test("bytes that are written while a wrong body is set aside do not make it a right one")
    func writtenMeanwhile() async throws {
        let meanwhile = Guarded<(@Sendable () -> Void)?>(nil)
        let disk = WatchedFileSystem(InMemoryFileSystem(time: time)) { call, name in
            guard call == .create, name == DiskDirectory.quarantine else { return }
            meanwhile.withLock { $0.take() }?()
        }
        try await fixture.withCache(disk, ScriptedTransport([])) { cache in
            let entry = try await fixture.storePromising(Fixture.wrong, in: cache)
            let writer = try entry.beginWriting(at: 65_536)
            meanwhile.withLock { meanwhile in
                meanwhile = {
                    entry.lose(1)
                    do {
                        try Data([1]).withUnsafeBytes { try writer.write($0) }
                    } catch {
                        Issue.record(error)
                    }
                }
            }
            let judge = cache.responder.bodyJudge(for: try fixture.request())
            let error = await #expect(throws: CacheError.self) {
                try await judge.decide(about: entry)
            }
            #expect(error?.code == .representationChanged)
            #expect(meanwhile.withLock { $0 == nil })
            #expect(try await cache.entry(for: fixture.request()) == nil)
            writer.end()
        }
    }

    @Test("a file is not given of a block that was written while it was looked for")
    func fileMeanwhile() async throws {
        let meanwhile = Guarded<(@Sendable () -> Void)?>(nil)
        let file = Guarded("")
        // The last call before the path is given.
        let disk = WatchedFileSystem(InMemoryFileSystem(time: time)) { call, name in
            guard call == .inspect, name == file.withLock({ $0 }) else { return }
            meanwhile.withLock { $0.take() }?()
        }
        try await fixture.withCache(disk, ScriptedTransport([])) { cache in
            let request = try fixture.request(promising: Fixture.body)
            try await cache.store(Fixture.body, for: fixture.request())
            #expect(try await cache.filePath(for: request) != nil)
            let store = try #require(cache.engine.storage.disk.openStore)
            let entry = try #require(try store.entry(for: request.key))
            file.withLock { $0 = entry.name.body(entry.generation) }
            meanwhile.withLock { meanwhile in
                meanwhile = {
                    entry.lose(1)
                    do {
                        let writer = try entry.beginWriting(at: 65_536)
                        try Fixture.wrong.suffix(Fixture.tail).withUnsafeBytes { bytes in
                            try writer.writeAndEnd(bytes)
                        }
                    } catch {
                        Issue.record(error)
                    }
                }
            }
            #expect(try await cache.filePath(for: request) == nil)
            #expect(meanwhile.withLock { $0 == nil } && entry.isComplete)
        }
    }

    @Test("a part of a long body does not wait for a comparison of the whole")
    func part() async throws {
        let body = Data(repeating: 5, count: 9 << 20)
        let holdup = Fixture.Holdup()
        let transport = ScriptedTransport(
            [try fixture.answer(body, promising: body)],
            time: time
        )
        let disk = WatchedFileSystem(InMemoryFileSystem(time: time)) { call, _ in
            if call == .read, transport.requests.count > 0 { holdup.hold() }
        }
        try await fixture.withCache(disk, transport) { cache in
            let reading = Task { try await cache.response(for: fixture.request()).body.collect() }
            _ = await holdup.isReached.wait()
            var part = try fixture.request()
            part.range = .bounded(100..<1100)
            let bytes = try await cache.response(for: part).body.collect()
            #expect(bytes.count == 1000)
            holdup.readerMayEnd()
            holdup.readerHasEnded()
            #expect(try await reading.value.count == body.count)
        }
    }

    @Test("comparisons leave threads to downloads, however many there are")
    func many() async throws {
        let isHeld = Guarded(false)
        let reads = DispatchSemaphore(value: 0)
        let inside = Guarded(0)
        let disk = WatchedFileSystem(InMemoryFileSystem(time: time)) { call, _ in
            guard call == .read, isHeld.withLock({ $0 }) else { return }
            inside.withLock { $0 += 1 }
            reads.wait()
            reads.signal()
        }
        try await fixture.withCache(disk, ScriptedTransport([])) { cache in
            let store = try #require(cache.engine.storage.disk.openStore)
            var comparisons: [Task<Void, any Error>] = []
            isHeld.withLock { $0 = true }
            for number in 0..<20 {
                var request = try CacheRequest("http://example.com/\(number)")
                try await cache.store(Fixture.body, for: request)
                request.expectedDigests = [try .of(Fixture.body)]
                let entry = try #require(try store.entry(for: request.key))
                let judge = cache.responder.bodyJudge(for: request)
                comparisons.append(Task { _ = try await judge.decide(about: entry) })
            }
            while inside.withLock({ $0 }) < 2 { await Task.yield() }
            for _ in 0..<100 {
                await cache.engine.storage.writers.run {}
                await Task.yield()
            }
            #expect(inside.withLock { $0 } == 2)
            reads.signal()
            for comparison in comparisons { try await comparison.value }
        }
    }
}
