import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A body that is truncated from outside while this process has it open, all of it verified.
///
/// Whatever is done next, no hole counts as bytes: what lies behind the new end is missing.
@Suite("Disk: truncated bodies", .timeLimit(.minutes(10)))
struct DiskTruncationTests {
    private static let film = bytes(3_000_000, seed: 7)
    /// What is left whole of the first million bytes.
    private static let left: Int64 = 15 * 65_536

    /// What finds out that the file is shorter.
    enum Discovery: CaseIterable {
        case readAtEnd, readInside, readCached, fillBehind, path, verify
    }

    private func truncateBody(_ disk: TestDisk, to size: Int) throws {
        let path = try #require(disk.paths(".body").first)
        switch disk.kind {
        case .posix: #expect(truncate(disk.root.appending(path).string, size) == 0)
        case .memory:
            #expect(disk.memory.tamper("\(disk.root)/\(path)") { $0.removeSubrange(size...) })
        }
    }

    /// All bytes but the last block, so that there is a gap to fill behind the others.
    private func partial(_ store: DiskStore) throws -> DiskEntry {
        let entry = try store.makeEntry(
            for: key("film"),
            metadata: [],
            completeLength: Int64(Self.film.count)
        )
        let writer = try entry.beginWriting(at: 0)
        try writer.write(Self.film[..<(45 * 65_536)])
        writer.end()
        return entry
    }

    private func discover(
        _ discovery: Discovery,
        _ entry: DiskEntry,
        _ store: DiskStore
    ) throws {
        switch discovery {
        case .readAtEnd: _ = entry.read(at: 999_000, 65_536)
        case .readInside: _ = entry.read(at: 2_000_000, 100)
        case .readCached:
            // The form that must not block leaves it to the other.
            if case .wouldBlock = entry.readCached(at: 2_000_000, 100) {
                _ = entry.read(at: 2_000_000, 100)
            }
        case .fillBehind: break
        case .path: #expect(try store.bodyPath(for: key("film")) == nil)
        case .verify: #expect(try store.verify(repair: true).damaged > 0)
        }
    }

    @Test(
        "what lies behind the new end is missing, not zeros",
        arguments: DiskKind.allCases,
        Discovery.allCases
    )
    func truncated(kind: DiskKind, discovery: Discovery) throws {
        let disk = TestDisk(kind)
        let fileSystem = WatchedFileSystem(disk.fileSystem, isWarm: true) { _, _ in }
        let store = try DiskStore(disk.options(), fileSystem: fileSystem, timeSource: disk.time)
        let entry = try partial(store)
        #expect(Self.film.holds(entry.read(3_000_000), at: 0))
        try truncateBody(disk, to: 1_000_000)
        try discover(discovery, entry, store)
        // The last block: its bytes make the file as long as it was.
        try entry.beginWriting(at: 45 * 65_536).write(Self.film[(45 * 65_536)...])
        #expect(entry.storedRanges.ranges == [0..<Self.left, 45 * 65_536..<3_000_000])
        #expect(Self.film.holds(entry.read(3_000_000), at: 0))
        #expect(Self.film.holds(entry.read(at: 45 * 65_536, 65_536), at: 45 * 65_536))
        // What is missing is fetched again, and then all is right.
        try entry.beginWriting(at: Self.left).write(Self.film[Int(Self.left)...])
        #expect(entry.isComplete)
        #expect(firstDifference(entry.read(3_000_000), Self.film) == nil)
        #expect(try store.verify(repair: false).damaged == 0)
    }

    @Test(
        "a file is not made longer while bytes are being sent that it has lost",
        arguments: DiskKind.allCases
    )
    func sentMeanwhile(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let fileSystem = WatchedFileSystem(disk.fileSystem, isWarm: true) { _, _ in }
        let store = try DiskStore(disk.options(), fileSystem: fileSystem, timeSource: disk.time)
        let entry = try partial(store)
        let isLeased: Void? = try entry.lease(0..<2_000_000) { _ in
            Result {
                try truncateBody(disk, to: 1_000_000)
                for _ in 0..<2 {
                    // The kernel finds an end, and no hole.
                    let error = #expect(throws: CacheError.self) {
                        try entry.beginWriting(at: 45 * 65_536).write(Self.film[(45 * 65_536)...])
                    }
                    #expect(error?.code == .localStorage)
                }
            }
        }?.get()
        #expect(isLeased != nil)
        try entry.beginWriting(at: 45 * 65_536).write(Self.film[(45 * 65_536)...])
        #expect(entry.storedRanges.ranges == [0..<Self.left, 45 * 65_536..<3_000_000])
    }

    @Test("a complete body that was truncated to nothing is missing", arguments: DiskKind.allCases)
    func toNothing(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open()
        let entry = try store.store(Self.film, for: key("film"))
        #expect(firstDifference(entry.read(3_000_000), Self.film) == nil)
        try truncateBody(disk, to: 0)
        #expect(entry.read(3_000_000).isEmpty)
        #expect(entry.storedRanges.ranges.isEmpty)
        try entry.beginWriting(at: 0).write(Self.film)
        #expect(firstDifference(entry.read(3_000_000), Self.film) == nil)
    }
}
