import FoundationEssentials
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Reading from threads of the caller's own, as players do.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct BlockingReaderTests {
    private static let film = OriginResource.generated(
        length: 3 << 20 + 777,
        cacheControl: "max-age=600"
    )
    private static let length: Int64 = 3 << 20 + 777

    /// The player's thread.
    private let thread = IOExecutor(threads: 2)

    private func read(
        _ reader: BlockingReader,
        at offset: Int64,
        count: Int,
        deadline: Duration? = nil
    ) async throws(CacheError) -> [UInt8] {
        try await thread.run { () throws(CacheError) in
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
            defer { buffer.deallocate() }
            var total = 0
            while total < count {
                let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[total...])
                let place = offset + Int64(total)
                let got = try reader.unsafeRead(at: place, into: rest, deadline: deadline)
                guard got > 0 else { break }
                total += got
            }
            return Array(buffer[..<total])
        }
    }

    private func all(_ reader: BlockingReader) async throws(CacheError) -> [UInt8] {
        try await thread.run { () throws(CacheError) in
            var result: [UInt8] = []
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 99_991, alignment: 1)
            defer { buffer.deallocate() }
            while true {
                let got = try reader.unsafeRead(into: buffer)
                guard got > 0 else { return result }
                result.append(contentsOf: buffer[..<got])
            }
        }
    }

    @Test("It opens, tells its size, reads, seeks, and ends with 0; again without the origin")
    func reads() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            let request = try fixture.request("/film")
            for isWarm in [false, true] {
                let before = fixture.origin.log.exchanges.count
                try await fixture.withCache { cache in
                    let reader = cache.blockingReader(for: request)
                    #expect(reader.size == nil && !reader.isSeekable && reader.reader == nil)
                    try await thread.run { () throws(CacheError) in try reader.open() }
                    #expect(reader.size == Self.length && reader.isSeekable)
                    let middle = 2_000_000..<Int64(2_000_000 + 100_000)
                    #expect(
                        try await firstDifference(
                            read(reader, at: middle.lowerBound, count: middle.count),
                            Self.film.bytes(middle)
                        ) == nil
                    )
                    #expect(reader.position == 0)
                    #expect(
                        try await firstDifference(all(reader), Self.film.bytes(0..<Self.length))
                            == nil
                    )
                    #expect(reader.position == Self.length)
                    try reader.seek(to: 12_345)
                    #expect(
                        try await firstDifference(
                            all(reader),
                            Self.film.bytes(12_345..<Self.length)
                        ) == nil
                    )
                    #expect(throws: CacheError.self) { try reader.seek(to: Self.length + 1) }
                    #expect(throws: CacheError.self) { try reader.seek(to: -1) }
                    #expect(reader.lastError == nil)
                }
                if isWarm { #expect(fixture.origin.log.exchanges.count == before) }
            }
        }
    }

    @Test("What fails is told, and is no end")
    func failures() async throws {
        try await CacheFixture.run { fixture in
            try await fixture.withCache { cache in
                let reader = cache.blockingReader(for: try fixture.request("/none"))
                let error = await #expect(throws: CacheError.self) {
                    _ = try await read(reader, at: 0, count: 10)
                }
                #expect(error?.status == 404)
                #expect(reader.lastError?.status == 404)
            }
        }
    }

    @Test(
        "A cancel ends an opening that waits, and all that comes later",
        arguments: [true, false]
    )
    func cancelsOpening(_ isForGood: Bool) async throws {
        try await CacheFixture.run { fixture in
            let gate = OriginGate()
            let silent = OriginBehaviour.faithful.with { $0.gate = gate }
            fixture.origin.serve("/film", Self.film, .first(1, silent))
            try await fixture.withCache { cache in
                let reader = cache.blockingReader(for: try fixture.request("/film"))
                let waiting = Task { try await read(reader, at: 0, count: 10) }
                await fixture.origin.waitUntil { $0.exchanges.count == 1 }
                isForGood ? reader.cancel() : reader.interrupt()
                let code: CacheError.Code = isForGood ? .cancelled : .interrupted
                let error = await #expect(throws: CacheError.self) { _ = try await waiting.value }
                #expect(error?.code == code)
                let later = await #expect(throws: CacheError.self) {
                    _ = try await read(reader, at: 0, count: 10)
                }
                #expect(later?.code == code)
                gate.open()
                reader.resume()
                guard !isForGood else { return }
                #expect(
                    try await firstDifference(
                        read(reader, at: 0, count: 10),
                        Self.film.bytes(0..<10)
                    ) == nil
                )
            }
        }
    }

    @Test("A cancel from another thread ends a read that waits", arguments: [true, false])
    func cancelsReads(_ isForGood: Bool) async throws {
        try await CacheFixture.run { fixture in
            let gate = OriginGate()
            let silent = OriginBehaviour.faithful.with { $0.gate = gate }
            fixture.origin.serve("/film", Self.film, .first(1, .faithful).then(silent))
            try await fixture.withCache { cache in
                let reader = cache.blockingReader(for: try fixture.request("/film"))
                _ = try await read(reader, at: 0, count: 10)
                let waiting = Task { try await read(reader, at: 2 << 20, count: 10) }
                await fixture.origin.waitUntil { $0.exchanges.count == 2 }
                isForGood ? reader.cancel() : reader.interrupt()
                let error = await #expect(throws: CacheError.self) { _ = try await waiting.value }
                #expect(error?.code == (isForGood ? .cancelled : .interrupted))
                gate.open()
                reader.resume()
                guard !isForGood else { return }
                let range = 2 << 20..<Int64(2 << 20 + 10)
                #expect(
                    try await firstDifference(
                        read(reader, at: 2 << 20, count: 10),
                        Self.film.bytes(range)
                    ) == nil
                )
            }
        }
    }

    @Test("A deadline ends an opening and a read; both may be tried again")
    func deadlines() async throws {
        let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
        try await CacheFixture.run { fixture in
            let (first, second) = (OriginGate(), OriginGate())
            let script = OriginScript.first(1, OriginBehaviour.faithful.with { $0.gate = first })
                .then(1, .faithful).then(OriginBehaviour.faithful.with { $0.gate = second })
            fixture.origin.serve("/film", Self.film, script)
            try await fixture.withCache {
                $0.timeSource = time
            } _: { cache in
                let reader = cache.blockingReader(for: try fixture.request("/film"))
                let opening = Task {
                    try await thread.run { () throws(CacheError) in
                        try reader.open(deadline: .seconds(3))
                    }
                }
                await fixture.origin.waitUntil { $0.exchanges.count == 1 }
                let opened = await time.advance(by: .seconds(3), until: opening)
                let error = #expect(throws: CacheError.self) { try opened.get() }
                #expect(error?.code == .timedOut)
                // Until its transfer has ended, the next read would join it.
                while !cache.engine.transfers.queue.snapshot().transfers.isEmpty {
                    await Task.yield()
                }
                first.open()
                #expect(
                    try await firstDifference(
                        read(reader, at: 0, count: 10),
                        Self.film.bytes(0..<10)
                    ) == nil
                )
                let waiting = Task {
                    try await read(reader, at: 2 << 20, count: 10, deadline: .seconds(5))
                }
                await fixture.origin.waitUntil { $0.exchanges.count == 3 }
                let lateRead = await time.advance(by: .seconds(5), until: waiting)
                let late = #expect(throws: CacheError.self) { _ = try lateRead.get() }
                #expect(late?.code == .timedOut)
                second.open()
                let range = 2 << 20..<Int64(2 << 20 + 10)
                #expect(
                    try await firstDifference(
                        read(reader, at: 2 << 20, count: 10),
                        Self.film.bytes(range)
                    ) == nil
                )
            }
        }
    }

    @Test("A reader by key alone reads what is stored, and fetches what is not")
    func byKey() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            let named = try CacheRequest(fixture.origin.url("/film"), key: "my film")
            for request in [try fixture.request("/film"), named] {
                try await fixture.withCache { cache in
                    let error = await #expect(throws: CacheError.self) {
                        _ = try await cache.reader(forKey: request.key)
                    }
                    #expect(error?.code == .notCached)
                    let first = try await cache.reader(for: request)
                    _ = try await first.bytes(at: 0, count: 10)
                    let summary = try #require(try await cache.entry(for: request))
                    let reader = try await cache.reader(forKey: summary.key)
                    #expect(reader.request.key == request.key)
                    #expect(try await firstDifference(reader.all(), Self.film.allBytes) == nil)
                }
            }
        }
    }
}
