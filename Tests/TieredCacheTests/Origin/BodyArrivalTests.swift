import FoundationEssentials
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Row 27: the last bytes of a body, which the disk refuses when readers have them already.
@Suite("The last bytes of a body on a full disk", .timeLimit(.minutes(1)))
struct BodyArrivalTests {
    private typealias Fixture = DigestFixture

    private let fixture = DigestFixture()
    private var time: ManualTimeSource { fixture.time }

    /// The side that names the digest of the body.
    enum Source: CaseIterable {
        case origin
        case request
    }

    private func transport(_ body: Data, for source: Source) throws -> ScriptedTransport {
        let promised = source == .origin ? Fixture.body : nil
        return ScriptedTransport([try fixture.answer(body, promising: promised)], time: time)
    }

    private func request(for source: Source) throws -> CacheRequest {
        try fixture.request(promising: source == .request ? Fixture.body : nil)
    }

    @Test(
        "who has read them while they are written is not told the end of a wrong body",
        arguments: Source.allCases,
        [true, false]
    )
    func whileWritten(_ source: Source, isRight: Bool) async throws {
        let holdup = Fixture.Holdup()
        let base = InMemoryFileSystem(time: time)
        let disk = WatchedFileSystem(
            base,
            watchWriting: { if $0 == Fixture.tail { holdup.hold() } },
            watch: { _, _ in }
        )
        let transport = try transport(isRight ? Fixture.body : Fixture.wrong, for: source)
        try await fixture.withCache(disk, transport) { cache in
            let reader = try await cache.reader(for: request(for: source))
            _ = await holdup.isReached.wait()
            try await read(reader, to: Fixture.body.count)
            base.fail(.write, with: .noSpace, times: 1000)
            let end = Task { try await reader.read(at: Int64(Fixture.body.count), count: 1) }
            holdup.readerMayEnd()
            try await expectEnd(end, isRight: isRight)
            base.heal()
        }
    }

    @Test(
        "who has read them is not told the end when they are gone",
        arguments: Source.allCases,
        [true, false]
    )
    func whenGone(_ source: Source, isRight: Bool) async throws {
        let written = Fixture.Holdup()
        let gone = Fixture.Holdup()
        let base = InMemoryFileSystem(time: time)
        let entry = Guarded<DiskEntry?>(nil)
        let disk = WatchedFileSystem(
            base,
            watchClosing: { _ in
                let entry = entry.withLock { $0 }
                if let entry, entry.storedRange(at: 65_536) == nil { gone.hold() }
            },
            watchWriting: { if $0 == Fixture.tail { written.hold() } },
            watch: { _, _ in }
        )
        let transport = try transport(isRight ? Fixture.body : Fixture.wrong, for: source)
        try await fixture.withCache(disk, transport) { cache in
            let request = try request(for: source)
            let reader = try await cache.reader(for: request)
            _ = await written.isReached.wait()
            try await read(reader, to: Fixture.body.count)
            base.fail(.write, with: .noSpace, times: 1000)
            let store = try #require(cache.engine.storage.disk.openStore)
            entry.withLock { $0 = store.resident(request.key)?.entry }
            written.readerMayEnd()
            written.readerHasEnded()
            // The transfer has not said yet that it passes the disk.
            _ = await gone.isReached.wait()
            let end = Task { try await reader.read(at: Int64(Fixture.body.count), count: 1) }
            gone.readerMayEnd()
            try await expectEnd(end, isRight: isRight)
            gone.readerHasEnded()
            base.heal()
            entry.withLock { $0 = nil }
        }
    }

    private func expectEnd(_ end: Task<Data, any Error>, isRight: Bool) async throws {
        let result = await end.result
        if isRight {
            #expect(try result.get().isEmpty)
        } else {
            let error = #expect(throws: CacheError.self) { try result.get() }
            #expect(error?.code == .integrityFailed)
        }
    }

    private func read(_ reader: CacheReader, to end: Int) async throws {
        var position = 0
        while position < end {
            let bytes = try await reader.read(at: Int64(position), count: end - position)
            try #require(!bytes.isEmpty)
            position += bytes.count
        }
    }
}
