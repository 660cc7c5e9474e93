import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// What is pinned takes its room from all that comes: what cannot fit beside it is refused in
/// words, and nothing leaves for it.
@Suite("Disk: room beside what is pinned", .timeLimit(.minutes(10)))
struct DiskPinnedRoomTests {
    private static let old = bytes(2_500_000, seed: 1)

    /// A store with a pinned film of more than half of the limit, and something that may leave.
    private static func open(_ disk: TestDisk) throws -> DiskStore {
        let store = try disk.open(disk.options(limit: 4 << 20))
        try store.store(old, for: key("film"), metadata: [1], class: .pinned)
        try store.store(bytes(500_000), for: key("other"))
        return store
    }

    private static func expectUntouched(_ store: DiskStore, _ disk: TestDisk) throws {
        let film = try #require(try store.entry(for: key("film")))
        #expect(film.isPinned && film.metadata == [1] && film.read(2_500_001) == old)
        #expect(store.successor(of: key("film")) == nil)
        #expect(try store.entry(for: key("other"))?.isComplete == true)
        #expect(try store.usage().bytes == disk.allocatedBytes)
        #expect(store.reservedBytes == 0)
    }

    @Test("the next generation is refused where both do not fit", arguments: DiskKind.allCases)
    func successor(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try Self.open(disk)
        let error = #expect(throws: CacheError.self) {
            try store.makeEntry(for: key("film"), metadata: [2], completeLength: 2_500_000)
        }
        #expect(error?.code == .localStorage)
        #expect(error?.message.contains("do not fit beside") == true, "\(error?.message ?? "")")
        try Self.expectUntouched(store, disk)
    }

    @Test("the next generation is taken where both fit", arguments: DiskKind.allCases)
    func successorThatFits(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try Self.open(disk)
        let new = bytes(1_000_000, seed: 2)
        try store.store(new, for: key("film"), metadata: [2])
        let film = try #require(try store.entry(for: key("film")))
        #expect(film.isPinned && film.metadata == [2] && film.read(1_000_001) == new)
    }

    @Test("room for a download is refused where it does not fit", arguments: DiskKind.allCases)
    func promise(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try Self.open(disk)
        for count: Int64 in [2_000_000, 5 << 20, 1 << 61] {
            let error = #expect(throws: CacheError.self) {
                _ = try store.promiseRoom(count, for: key("new"))
            }
            #expect(error?.code == .localStorage)
        }
        try Self.expectUntouched(store, disk)
    }
}
