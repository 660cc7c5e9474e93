import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Synchronization
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Row 27: bytes of a body that are gone when its reader asks for the end, or for them again.
@Suite("Bytes that are gone before the decision", .timeLimit(.minutes(1)))
struct BodyLossTests {
    private typealias Fixture = DigestFixture

    private let fixture = DigestFixture()
    private var time: ManualTimeSource { fixture.time }

    /// A disk that holds the write of the last block.
    private func disk(_ holdup: Fixture.Holdup) -> WatchedFileSystem {
        WatchedFileSystem(
            InMemoryFileSystem(time: time),
            watchWriting: { if $0 == Fixture.tail { holdup.hold() } },
            watch: { _, _ in }
        )
    }

    /// How bytes go that were read.
    enum Loss: CaseIterable {
        case damage
        case eviction
        case truncation
    }

    private func lose(_ loss: Loss, of entry: DiskEntry) throws {
        switch loss {
        case .damage:
            entry.lose(0)
        case .eviction:
            let store = try entry.openStore()
            try store.withLock(of: entry.name) { (lock) throws(FileSystemError) in
                try entry.giveUp(lock, runs: [0..<1]) { (_) throws(FileSystemError) in }
            }
        case .truncation:
            let file = try #require(entry.state.withLock { $0.body })
            try entry.fileSystem.truncate(file, to: 100)
            #expect(!entry.loseBehindEnd(of: file))
        }
    }

    // MARK: The end

    @Test("a reader of any bytes is not told the end, at each try", arguments: Loss.allCases)
    func end(_ loss: Loss) async throws {
        let holdup = Fixture.Holdup()
        let transport = ScriptedTransport(
            [try fixture.answer(Fixture.wrong, promising: Fixture.body)],
            time: time
        )
        try await fixture.withCache(disk(holdup), transport) { cache in
            let request = try fixture.request()
            let store = try #require(cache.engine.storage.disk.openStore)
            let reader = try await cache.reader(for: request)
            _ = await holdup.isReached.wait()
            try await read(reader, to: Fixture.body.count)
            try lose(loss, of: try #require(store.resident(request.key)).entry)
            holdup.readerMayEnd()
            holdup.readerHasEnded()
            for _ in 0..<2 {
                let error = await #expect(throws: CacheError.self) {
                    try await reader.read(at: Int64(Fixture.body.count), count: 1)
                }
                #expect(error?.code == .integrityFailed)
            }
        }
    }

    @Test("a reader that has not read what is gone is told the end")
    func endOfPart() async throws {
        let holdup = Fixture.Holdup()
        let transport = ScriptedTransport(
            [try fixture.answer(Fixture.body, promising: Fixture.body)],
            time: time
        )
        try await fixture.withCache(disk(holdup), transport) { cache in
            let request = try fixture.request()
            let store = try #require(cache.engine.storage.disk.openStore)
            let reader = try await cache.reader(for: request)
            _ = await holdup.isReached.wait()
            try await read(reader, from: 65_536, to: Fixture.body.count)
            try lose(.damage, of: try #require(store.resident(request.key)).entry)
            holdup.readerMayEnd()
            holdup.readerHasEnded()
            #expect(try await reader.read(at: Int64(Fixture.body.count), count: 1).isEmpty)
        }
    }

    // MARK: The bytes

    @Test(
        "bytes that are gone are fetched again, and the body is compared with them",
        arguments: Loss.allCases,
        [true, false]
    )
    func again(_ loss: Loss, isRight: Bool) async throws {
        let holdup = Fixture.Holdup()
        let bytes = isRight ? Fixture.body : Fixture.wrong
        var first = try fixture.lastBlock(of: bytes)
        first.steps = [.bytes([UInt8](bytes.prefix(65_536)))]
        first.head = first.head.map { head in
            var head = head
            head.headerFields[.contentLength] = "65536"
            head.headerFields[.contentRange] = "bytes 0-65535/\(bytes.count)"
            return head
        }
        let transport = ScriptedTransport(
            [try fixture.answer(bytes, promising: Fixture.body), first],
            time: time
        )
        try await fixture.withCache(disk(holdup), transport) { cache in
            let request = try fixture.request()
            let store = try #require(cache.engine.storage.disk.openStore)
            let reader = try await cache.reader(for: request)
            _ = await holdup.isReached.wait()
            try await read(reader, to: bytes.count)
            try lose(loss, of: try #require(store.resident(request.key)).entry)
            holdup.readerMayEnd()
            holdup.readerHasEnded()
            let queue = cache.engine.transfers.queue
            while queue.snapshot().count(.running) > 0 { await Task.yield() }
            try await read(reader, to: 65_536)
            let end = Task { try await reader.read(at: Int64(bytes.count), count: 1) }
            try await expectEnd(end, isRight: isRight, code: .representationChanged)
        }
    }

    // MARK: A gap that the disk does not take

    @Test(
        "what fills a gap past the disk is compared with the rest, decided before or not",
        arguments: [true, false],
        [true, false]
    )
    func gap(isRight: Bool, isDecided: Bool) async throws {
        let disk = InMemoryFileSystem(time: time)
        // What was decided right lacks a block that comes back wrong.
        let stored = isRight || isDecided ? Fixture.body : Fixture.wrong
        var spoiled = stored
        spoiled[1] ^= 1
        let bytes = isRight ? stored : spoiled
        var first = try fixture.lastBlock(of: bytes, promising: Fixture.body)
        first.steps = [.bytes([UInt8](bytes.prefix(65_536)))]
        first.head = first.head.map { head in
            var head = head
            head.headerFields[.contentLength] = "65536"
            head.headerFields[.contentRange] = "bytes 0-65535/\(bytes.count)"
            return head
        }
        let transport = ScriptedTransport([first], time: time)
        try await fixture.withCache(disk, transport) { cache in
            let request = try fixture.request()
            try await cache.store(stored, for: request)
            let store = try #require(cache.engine.storage.disk.openStore)
            let old = try #require(try store.entry(for: request.key))
            var fields = try #require(StoredResponse(encoded: old.metadata)).fields
            fields[.eTag] = "\"\(bytes[0])\""
            fields[.cacheControl] = "max-age=60"
            try fields.promise(Fixture.body)
            let head = try #require(StoredResponse(encoded: old.metadata)).with(fields)
            try old.updateMetadata(head.encoded())
            cache.engine.storage.memory.remove(request.key)
            if isDecided {
                let judge = cache.responder.bodyJudge(for: request)
                _ = try await judge.decide(about: old)
                #expect(!judge.awaitsDecision(old))
            }
            old.lose(0)
            disk.fail(.write, with: .noSpace, times: 100_000)
            let reader = try await cache.reader(for: request)
            try await read(reader, to: bytes.count)
            let end = Task { try await reader.read(at: Int64(bytes.count), count: 1) }
            try await expectEnd(end, isRight: isRight, code: .integrityFailed)
            disk.heal()
        }
    }

    // MARK: Eviction

    @Test("blocks of a body that is to be compared stay, and may go behind that")
    func kept() async throws {
        let disk = InMemoryFileSystem(time: time)
        try await fixture.withCache(disk, ScriptedTransport([])) { cache in
            let entry = try await fixture.storePromising(Fixture.body, in: cache)
            let judge = cache.responder.bodyJudge(for: try fixture.request())
            #expect(judge.awaitsDecision(entry))
            var byte: UInt8 = 0
            func cold() -> Int {
                _ = withUnsafeMutableBytes(of: &byte) { entry.read(at: 65_536, into: $0) }
                // A region is 256 KiB: none is cold in a body this short, but behind a reader that
                // is taken for one of another region.
                entry.regions.store(1 << 40, ordering: .relaxed)
                return entry.coldRuns(1 << 20, head: 0).count
            }
            #expect(cold() == 0)
            guard case .accepted = try await judge.decide(about: entry) else {
                Issue.record("the body is right")
                return
            }
            #expect(cold() > 0)
        }
    }

    private func expectEnd(
        _ end: Task<Data, any Error>,
        isRight: Bool,
        code: CacheError.Code
    ) async throws {
        let result = await end.result
        if isRight {
            #expect(try result.get().isEmpty)
        } else {
            let error = #expect(throws: CacheError.self) { try result.get() }
            #expect(error?.code == code)
        }
    }

    private func read(_ reader: CacheReader, from start: Int = 0, to end: Int) async throws {
        var position = start
        while position < end {
            let bytes = try await reader.read(at: Int64(position), count: end - position)
            try #require(!bytes.isEmpty)
            position += bytes.count
        }
    }
}
