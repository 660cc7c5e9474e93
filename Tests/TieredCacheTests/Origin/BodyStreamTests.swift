import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Synchronization
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Row 27: bodies that the disk does not hold whole, compared as they come.
@Suite("Bodies compared as they come", .timeLimit(.minutes(1)))
struct BodyStreamTests {
    private static let block = 65_536

    private let fixture = DigestFixture()
    private var time: ManualTimeSource { fixture.time }

    private static func body(_ count: Int, isRight: Bool) -> Data {
        var body = Data(repeating: 7, count: count)
        if !isRight { body[count / 2] ^= 1 }
        return body
    }

    /// A response with some bytes of a body.
    private func answer(
        _ bytes: Data,
        _ range: Range<Int>,
        promising promised: Data? = nil
    ) throws -> ScriptedResponse {
        var fields: HTTPFields = [
            .contentLength: "\(range.count)", .eTag: "\"a\"", .cacheControl: "max-age=60",
            .acceptRanges: "bytes",
        ]
        let isPart = range.count < bytes.count
        if isPart {
            fields[.contentRange] =
                "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(bytes.count)"
        }
        if let promised { try fields.promise(promised) }
        return ScriptedResponse(
            status: isPart ? 206 : 200,
            fields: fields,
            steps: stride(from: range.lowerBound, to: range.upperBound, by: Self.block).map {
                .bytes([UInt8](bytes[$0..<min($0 + Self.block, range.upperBound)]))
            }
        )
    }

    // MARK: Gaps on a full disk

    /// The blocks that are missing: two gaps far apart; three, the last one at the end.
    static let missing = [[0, 20], [0, 20, 40], [3, 22]]

    @Test(
        "what fills several gaps past the disk, one after the other, is compared with the rest",
        arguments: missing,
        [true, false]
    )
    func gaps(_ missing: [Int], isRight: Bool) async throws {
        let disk = InMemoryFileSystem(time: time)
        let count = 40 * Self.block + 1000
        let bytes = Self.body(count, isRight: isRight)
        let answers = try missing.map { block in
            let start = block * Self.block
            return try answer(bytes, start..<min(start + Self.block, count))
        }
        let transport = ScriptedTransport(answers, time: time)
        try await fixture.withCache(disk, transport) { cache in
            let request = try fixture.request()
            let entry = try await store(bytes, promising: count, for: request, in: cache)
            for block in missing { entry.lose(block) }
            disk.fail(.write, with: .noSpace, times: 100_000)
            let reader = try await cache.reader(for: request)
            try await read(reader, to: count)
            let end = Task { try await reader.read(at: Int64(count), count: 1) }
            try await expectEnd(end, isRight: isRight)
            #expect(transport.requests.count == missing.count)
            disk.heal()
        }
    }

    private func store(
        _ bytes: Data,
        promising count: Int,
        for request: CacheRequest,
        in cache: MediaCache
    ) async throws -> DiskEntry {
        try await cache.store(bytes, for: request)
        let store = try #require(cache.engine.storage.disk.openStore)
        let entry = try #require(try store.entry(for: request.key))
        let head = try #require(StoredResponse(encoded: entry.metadata))
        var fields = head.fields
        fields[.eTag] = "\"a\""
        fields[.cacheControl] = "max-age=60"
        try fields.promise(Self.body(count, isRight: true))
        try entry.updateMetadata(head.with(fields).encoded())
        cache.engine.storage.memory.remove(request.key)
        return entry
    }

    // MARK: Bodies that are never whole

    @Test(
        "a body that does not fit beside what is pinned gives up what was read, and is compared",
        arguments: [true, false]
    )
    func tooLong(isRight: Bool) async throws {
        let count = 4 << 20
        let half = count * 5 / 8
        let bytes = Self.body(count, isRight: isRight)
        var film = try answer(bytes, 0..<count, promising: Self.body(count, isRight: true))
        film.steps.insert(.delay(.seconds(1)), at: half / Self.block)
        let transport = ScriptedTransport([film], time: time)
        try await withSmallCache(transport) { cache in
            var pinned = try CacheRequest("http://example.com/pinned")
            pinned.options.insert(.pinned)
            try await cache.store(Data(repeating: 1, count: 2 << 20), for: pinned)
            let request = try fixture.request()
            let response = try await cache.response(for: request)
            var got = 0
            while got < half, let chunk = try await response.body.source.next() {
                got += chunk.count
            }
            try #require(got == half)
            let store = try #require(cache.engine.storage.disk.openStore)
            let entry = try #require(store.resident(request.key)).entry
            // What was read before the disk was full is cold, but for the last region of 256 KiB.
            entry.regions.store(1 << ((half - 1) >> 18), ordering: .relaxed)
            let rest = Task { () -> Data in
                var last = Data()
                while let chunk = try await response.body.source.next() { last = Data(chunk) }
                return last
            }
            let result = await time.advance(by: .seconds(1), until: rest)
            // The head, and what was read last.
            #expect(entry.storedRange(at: 0) != nil && entry.storedRange(at: 1 << 19) == nil)
            #expect(entry.storedRange(at: Int64(count) - 1) != nil)
            if isRight {
                _ = try result.get()
            } else {
                let error = #expect(throws: CacheError.self) { try result.get() }
                #expect(error?.code == .integrityFailed)
            }
            #expect(transport.requests.count == 1)
        }
    }

    /// A cache of 5 MiB in which 1 MiB is huge.
    private func withSmallCache(
        _ transport: ScriptedTransport,
        _ body: (MediaCache) async throws -> Void
    ) async throws {
        var parts = EngineParts()
        parts.fileSystem = InMemoryFileSystem(time: time)
        parts.adjustDisk = { options in
            options.hugeBody = 1 << 20
            options.headLength = 131_072
        }
        var configuration = fixture.configuration(transport)
        configuration.diskLimit = 5 << 20
        let cache = try MediaCache(configuration, parts: parts)
        do {
            try await body(cache)
        } catch {
            await cache.shutdown()
            throw error
        }
        await cache.shutdown()
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
