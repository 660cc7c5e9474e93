import FoundationEssentials
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Damage that is met while an entry is read through the engine: right bytes, and no more is
/// fetched than what is damaged.
@Suite("Damage, met by readers", .tags(.realTime), .timeLimit(.minutes(10)))
struct DiskDamageMetTests {
    private struct Damage: Sendable, CustomTestStringConvertible {
        var name: String
        var suffix: String
        var length: Int64
        /// What has to be fetched again.
        var lost: Range<Int64>
        var apply: @Sendable (InMemoryFileSystem, String) -> Void

        var testDescription: String { name }
    }

    private static func change(
        _ change: @escaping @Sendable (inout [UInt8]) -> Void
    ) -> @Sendable (InMemoryFileSystem, String) -> Void {
        { disk, path in disk.tamper(path, with: change) }
    }

    private static let damages = [
        Damage(
            name: "a bit of the fourth block",
            suffix: ".body",
            length: 600_000,
            lost: 196_608..<262_144,
            apply: change { $0[200_000] ^= 1 }
        ),
        Damage(
            name: "the first byte",
            suffix: ".body",
            length: 600_000,
            lost: 0..<65_536,
            apply: change { $0[0] ^= 0x80 }
        ),
        Damage(
            name: "the last byte",
            suffix: ".body",
            length: 600_000,
            lost: 589_824..<600_000,
            apply: change { $0[599_999] ^= 1 }
        ),
        Damage(
            name: "two blocks zeroed",
            suffix: ".body",
            length: 600_000,
            lost: 131_072..<262_144,
            apply: change {
                $0.replaceSubrange(131_072..<262_144, with: repeatElement(0, count: 131_072))
            }
        ),
        Damage(
            name: "cut off in a block",
            suffix: ".body",
            length: 600_000,
            lost: 458_752..<600_000,
            apply: change { $0.removeLast($0.count - 500_000) }
        ),
        Damage(
            name: "no body",
            suffix: ".body",
            length: 600_000,
            lost: 0..<600_000,
            apply: { disk, path in disk.delete(path) }
        ),
        Damage(
            name: "no record",
            suffix: ".record",
            length: 600_000,
            lost: 0..<600_000,
            apply: { disk, path in disk.delete(path) }
        ),
        Damage(
            name: "a record that is garbage",
            suffix: ".record",
            length: 600_000,
            lost: 0..<600_000,
            apply: change { $0 = $0.map { $0 &+ 1 } }
        ),
        Damage(
            name: "a checksum of the table",
            suffix: ".record",
            length: 600_000,
            // The table ends the record: ten blocks.
            lost: 524_288..<589_824,
            apply: change { $0[$0.count - 16] ^= 1 }
        ),
        Damage(
            name: "a small body",
            suffix: ".record",
            length: 5000,
            lost: 0..<5000,
            apply: change { $0[$0.count - 1] ^= 1 }
        ),
    ]

    @Test("right bytes, and only the damaged blocks are fetched again", arguments: damages.indices)
    func met(number: Int) async throws {
        let damage = Self.damages[number]
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: damage.length, cacheControl: "max-age=60")
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            let disk = InMemoryFileSystem()
            try await withCache(fixture, disk) { cache in
                let bytes = try await cache.data(for: request)
                #expect(firstDifference(bytes, film.allBytes) == nil)
            }
            let path = try #require(disk.files.keys.first { $0.hasSuffix(damage.suffix) })
            damage.apply(disk, path)
            let before = fixture.origin.log.bodyBytesWritten
            try await withCache(fixture, disk) { cache in
                let response = try await cache.response(for: request)
                #expect(
                    try await firstDifference(response.body.collect(), film.allBytes) == nil,
                    "\(damage.name)"
                )
                #expect(response.bytesFromOrigin == Int64(damage.lost.count), "\(damage.name)")
                let kept = damage.length - Int64(damage.lost.count)
                #expect(response.bytesFromCache == kept, "\(damage.name)")
            }
            let exchanges = fixture.origin.log.exchanges.dropFirst()
            let fetched = fixture.origin.log.bodyBytesWritten - before
            #expect(fetched == Int64(damage.lost.count), "\(damage.name)")
            if damage.lost != 0..<damage.length {
                #expect(exchanges.allSatisfy { $0.status == 206 }, "\(damage.name)")
                let first = exchanges.first?.fields[.range] ?? ""
                #expect(first.hasPrefix("bytes=\(damage.lost.lowerBound)-"), "\(first)")
            }
            // All is well again.
            try await withCache(fixture, disk) { cache in
                let response = try await cache.response(for: request)
                #expect(
                    try await firstDifference(response.body.collect(), film.allBytes) == nil,
                    "\(damage.name)"
                )
                #expect(response.bytesFromOrigin == 0, "\(damage.name)")
                #expect(try await cache.verify().damaged == 0, "\(damage.name)")
            }
        }
    }

    @Test("a reader counts the bytes of a damaged block as the origin's")
    func readerCounts() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 600_000, cacheControl: "max-age=60")
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            let disk = InMemoryFileSystem()
            try await withCache(fixture, disk) { cache in
                let bytes = try await cache.data(for: request)
                #expect(firstDifference(bytes, film.allBytes) == nil)
            }
            let path = try #require(disk.files.keys.first { $0.hasSuffix(".body") })
            #expect(disk.tamper(path) { $0[200_000] ^= 1 })
            try await withCache(fixture, disk) { cache in
                let reader = try await cache.reader(for: request)
                #expect(try await firstDifference(reader.all(), film.allBytes) == nil)
                #expect(reader.bytesFromOrigin == 65_536)
                #expect(reader.bytesFromCache == 600_000 - 65_536)
            }
        }
    }

    private func withCache(
        _ fixture: CacheFixture,
        _ disk: InMemoryFileSystem,
        _ body: (MediaCache) async throws -> Void
    ) async throws {
        let cache = try MediaCache(fixture.configuration(), fileSystem: disk)
        do {
            try await body(cache)
        } catch {
            await cache.shutdown()
            throw error
        }
        await cache.shutdown()
    }
}
