import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct CacheReaderTests {
    private static let length: Int64 = 8 << 20 + 12_345
    private static let film = OriginResource.generated(
        length: length,
        cacheControl: "max-age=600"
    )

    @Test("A reader knows size and head, and its first read costs the head of the file")
    func opensAtTheHead() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: fixture.request("/film"))
                #expect(reader.size == Self.length)
                #expect(reader.isSeekable)
                #expect(reader.status == .ok)
                #expect(
                    try await firstDifference(
                        reader.bytes(at: 0, count: 1000),
                        Self.film.bytes(0..<1000)
                    ) == nil
                )
            }
            #expect(fixture.origin.log.bodyBytesWritten <= 256 << 10)
            #expect(fixture.origin.log.exchanges.count == 1)
        }
    }

    @Test("All of a file, then all of it again without the origin")
    func readsThrough() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: request)
                #expect(try await firstDifference(reader.all(), Self.film.allBytes) == nil)
                #expect(reader.bytesFromOrigin == Self.length)
            }
            let asked = fixture.origin.log.exchanges.count
            #expect(fixture.origin.log.bodyBytesWritten == Self.length)
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: request)
                #expect(try await firstDifference(reader.all(), Self.film.allBytes) == nil)
                #expect(reader.bytesFromCache == Self.length)
                #expect(try await reader.bytes(at: Self.length, count: 10).isEmpty)
            }
            #expect(fixture.origin.log.exchanges.count == asked)
        }
    }

    @Test("What is ordered while the last order is under way begins where that ends")
    func ordersMeet() async throws {
        try await CacheFixture.run { fixture in
            let slow = OriginBehaviour.faithful.with { $0.bytesPerSecond = 4 << 20 }
            fixture.origin.serve("/film", Self.film, OriginScript(slow))
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: fixture.request("/film"))
                // So that orders end within blocks, which are asked for as a whole.
                let step = 30_000
                for offset in stride(from: 0, to: Self.length, by: step) {
                    let bytes = try await reader.bytes(at: offset, count: step)
                    let range = offset..<min(offset + Int64(step), Self.length)
                    #expect(firstDifference(bytes, Self.film.bytes(range)) == nil)
                }
            }
            let asked = fixture.origin.log.exchanges.compactMap { exchange in
                exchange.fields[.range]?.dropFirst("bytes=".count).split(separator: "-")
                    .compactMap { Int64($0) }
            }
            .sorted { $0[0] < $1[0] }
            #expect(asked.first?[0] == 0)
            for (before, after) in zip(asked, asked.dropFirst()) {
                #expect(after[0] == before[1] + 1)
            }
            #expect(fixture.origin.log.bodyBytesWritten == Self.length)
        }
    }

    @Test("A size that is not known yet is nil, by URL and by key, and never waited for")
    func unknownSize() async throws {
        try await CacheFixture.run { fixture in
            let length: Int64 = 500_000
            var film = OriginResource.generated(length: length, cacheControl: "max-age=600")
            film.framing = .chunked
            film.acceptsRanges = false
            let gate = OriginGate()
            fixture.origin.serve("/film", film, OriginScript(.wait(for: gate, after: 200_000)))
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let first = try await cache.reader(for: request)
                #expect(
                    try await firstDifference(first.bytes(at: 0, count: 1000), film.bytes(0..<1000))
                        == nil
                )
                let second = try await cache.reader(forKey: request.key)
                #expect(
                    try await firstDifference(
                        second.bytes(at: 100, count: 100),
                        film.bytes(100..<200)
                    ) == nil
                )
                for reader in [first, second] {
                    #expect(reader.size == nil && !reader.isSeekable)
                    // Beyond an end that is not known there may be bytes.
                    try reader.seek(to: length + 5)
                    try reader.seek(to: 70_000)
                }
                gate.open()
                for reader in [first, second] {
                    let tail = try await reader.bytes(at: length - 10, count: 100)
                    #expect(firstDifference(tail, film.bytes(length - 10..<length)) == nil)
                    #expect(reader.size == length)
                    #expect(reader.position == 70_000)
                    #expect(throws: CacheError.self) { try reader.seek(to: length + 1) }
                }
            }
            #expect(fixture.origin.log.exchanges.count == 1)
        }
    }

    @Test("The cursor moves with reads and seeks, and no request is made for it")
    func cursor() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: fixture.request("/film"))
                let asked = fixture.origin.log.exchanges.count
                try reader.seek(to: Self.length - 10)
                #expect(fixture.origin.log.exchanges.count == asked)
                let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 1)
                defer { buffer.deallocate() }
                var got: [UInt8] = []
                while case let count = try await reader.unsafeRead(into: buffer), count > 0 {
                    got.append(contentsOf: buffer[..<count])
                }
                #expect(
                    firstDifference(got, Self.film.bytes(Self.length - 10..<Self.length)) == nil
                )
                #expect(reader.position == Self.length)
                #expect(throws: CacheError.self) { try reader.seek(to: Self.length + 1) }
                #expect(throws: CacheError.self) { try reader.seek(to: -1) }
            }
        }
    }

    @Test("A reader that is opened at an offset reads from there", arguments: [true, false])
    func openedAtOffset(isStored: Bool) async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                if isStored { _ = try await cache.data(for: request) }
                let reader = try await cache.reader(for: request, at: 1 << 20)
                #expect(reader.position == 1 << 20)
                let bytes = try await reader.read(count: 100)
                #expect(Array(bytes) == Self.film.bytes(1 << 20..<(1 << 20) + Int64(bytes.count)))
                #expect(reader.position == 1 << 20 + Int64(bytes.count) && !bytes.isEmpty)
            }
        }
    }

    @Test("Random seeks fetch at most 1.3 of the distinct bytes", arguments: [11, 12, 13])
    func randomSeeks(_ seed: UInt64) async throws {
        try await CacheFixture.run { fixture in
            let length: Int64 = 200 << 20
            let film = OriginResource.generated(length: length, cacheControl: "max-age=600")
            fixture.origin.serve("/film", film)
            try await fixture.withCache { cache in
                var random = SplitMix(seed: seed)
                var read = ByteRangeSet()
                let reader = try await cache.reader(for: fixture.request("/film"))
                for _ in 0..<24 {
                    let offset = Int64.random(in: 0..<length, using: &random)
                    let count = Int.random(in: 300_000...1_200_000, using: &random)
                    let end = min(length, offset + Int64(count))
                    let bytes = try await reader.bytes(at: offset, count: count)
                    #expect(
                        firstDifference(bytes, film.bytes(offset..<end)) == nil,
                        "seed \(seed), offset \(offset)"
                    )
                    read.insert(offset..<end)
                }
                let fetched = fixture.origin.log.bodyBytesWritten
                #expect(Double(fetched) <= Double(read.count) * 1.3, "seed \(seed)")
            }
        }
    }

    @Test("What is stored is returned at once, in the middle of gaps too")
    func storedIsStored() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: request, at: 3 << 20)
                _ = try await reader.bytes(at: 3 << 20, count: 65_536)
            }
            let asked = fixture.origin.log.exchanges.count
            try await fixture.withCache { cache in
                var stored = request
                stored.policy = .cacheOnly
                let reader = try await cache.reader(
                    for: stored,
                    at: 3 << 20,
                    expectedEnd: 3 << 20 + 10
                )
                let range = 3 << 20..<Int64(3 << 20 + 65_536)
                #expect(
                    try await firstDifference(
                        reader.bytes(at: 3 << 20, count: 65_536),
                        Self.film.bytes(range)
                    ) == nil
                )
                let error = await #expect(throws: CacheError.self) {
                    _ = try await reader.bytes(at: 5 << 20, count: 10)
                }
                #expect(error?.code == .notCached)
                #expect(reader.lastError?.code == .notCached)
            }
            #expect(fixture.origin.log.exchanges.count == asked)
        }
    }

    @Test("Two streams far apart in one file do not fetch it twice")
    func interleavedStreams() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: fixture.request("/film"))
                let half = Self.length / 2
                for step in 0..<64 {
                    let offset = Int64(step) * (half / 64)
                    for start in [offset, offset + half] {
                        let range = start..<start + half / 64
                        let bytes = try await reader.bytes(at: start, count: range.count)
                        #expect(firstDifference(bytes, Self.film.bytes(range)) == nil)
                    }
                }
            }
            #expect(fixture.origin.log.bodyBytesWritten <= Self.length * 11 / 10)
            #expect(fixture.origin.log.exchanges.count <= 64)
        }
    }

    @Test("Twelve mixed readers of something cold fetch at most 1.1 of its size")
    func twelveReaders() async throws {
        try await CacheFixture.run { fixture in
            let length: Int64 = 32 << 20
            let film = OriginResource.generated(length: length, cacheControl: "max-age=600")
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    for reader in 0..<12 {
                        group.addTask {
                            let start = Int64(reader % 4) * (length / 4)
                            let end = reader % 3 == 0 ? length : min(length, start + length / 3)
                            let handle = try await cache.reader(for: request, at: start)
                            let bytes = try await handle.all(
                                from: start,
                                to: reader % 2 == 0 ? end : nil
                            )
                            let read = start..<start + Int64(bytes.count)
                            return [UInt8](bytes) == film.bytes(read) && !bytes.isEmpty
                        }
                    }
                    for try await isRight in group {
                        #expect(isRight)
                    }
                }
            }
            #expect(fixture.origin.log.bodyBytesWritten <= length * 11 / 10)
        }
    }

    @Test("Small stored runs are fetched once more rather than asked around")
    func smallGaps() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let start: Int64 = 1 << 20
                let end: Int64 = 3 << 20
                for offset in stride(from: start, to: end, by: 3 * 65_536) {
                    _ = try await cache.bytes(for: request, range: offset..<offset + 10).collect()
                }
                let asked = fixture.origin.log.exchanges.count
                let reader = try await cache.reader(for: request, at: start, expectedEnd: end)
                let bytes = try await reader.all(from: start, to: end)
                #expect(firstDifference([UInt8](bytes), Self.film.bytes(start..<end)) == nil)
                #expect(fixture.origin.log.exchanges.count - asked <= 2)
            }
        }
    }

    @Test("Readers side by side share one transfer")
    func nearReaders() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    for reader in 0..<5 {
                        group.addTask {
                            let start = Int64(reader) * 50_000
                            let handle = try await cache.reader(for: request)
                            let bytes = try await handle.all(from: start, to: Self.length)
                            return [UInt8](bytes) == Self.film.bytes(start..<Self.length)
                        }
                    }
                    for try await isRight in group { #expect(isRight) }
                }
            }
            #expect(fixture.origin.log.bodyBytesWritten <= Self.length * 11 / 10)
        }
    }
}
