import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// What a guest has open: the owner takes nothing out of it.
@Suite("Disk: what guests read", .timeLimit(.minutes(10)))
struct DiskSharingTests {
    private static let film = bytes(2 << 20, seed: 1)

    private func options(_ disk: TestDisk) -> DiskStore.Options {
        var options = disk.options(limit: 8 << 20)
        options.hugeBody = 1 << 20
        options.headLength = 131_072
        return options
    }

    /// An owner with a huge film without a reader of its own, and a guest.
    private func withGuest(
        _ kind: DiskKind,
        _ body: (TestDisk, _ owner: DiskStore, _ guest: DiskStore) throws -> Void
    ) throws {
        let disk = TestDisk(kind)
        let owner = try disk.open(options(disk))
        try owner.store(Self.film, for: key("film"))
        owner.closeIdle()
        let guest = try disk.open(options(disk))
        try #require(!guest.access.canWrite)
        try body(disk, owner, guest)
    }

    @Test("a path that a guest was given keeps all its bytes", arguments: DiskKind.allCases)
    func path(kind: DiskKind) throws {
        try withGuest(kind) { disk, owner, guest in
            let lease = try #require(try guest.entry(for: key("film")))
            let path = try #require(try guest.bodyPath(for: key("film")))
            let name = try #require(path.lastComponent?.string)
            let file = try #require(disk.paths(".body").first { $0.hasSuffix(name) })
            let before = disk.files[file]
            // Room for all of it but a little: a tail would be given up.
            try owner.setLimit(1 << 20)
            #expect(owner.counters.shortened == 0)
            // It may leave as a whole, which its readers do not see; but never with holes.
            #expect(disk.files[file] == nil || disk.files[file] == before)
            #expect(firstDifference(lease.read(2 << 20), Self.film) == nil)
        }
    }

    @Test("blocks in use are not given up either while a guest reads", arguments: DiskKind.allCases)
    func coldBlocks(kind: DiskKind) throws {
        try withGuest(kind) { disk, owner, guest in
            let reading = try #require(try owner.entry(for: key("film")))
            #expect(reading.read(at: 1 << 20, 1000).count == 1000)
            var lease = try guest.entry(for: key("film"))
            #expect(reading.isOpenElsewhere)
            #expect(try owner.trimmedForRoom() == 0)
            #expect(firstDifference(lease?.read(2 << 20), Self.film) == nil)
            #expect(reading.isComplete && owner.counters.housekeepingErrors == 0)
            lease = nil
            #expect(!reading.isOpenElsewhere)
            #expect(try owner.trimmedForRoom() > 0)
            #expect(!reading.isComplete)
        }
    }

    @Test(
        "a guest that comes after blocks were given up gets no path",
        arguments: DiskKind.allCases
    )
    func tooLate(kind: DiskKind) throws {
        try withGuest(kind) { disk, owner, guest in
            let reading = try #require(try owner.entry(for: key("film")))
            #expect(reading.read(at: 1 << 20, 1000).count == 1000)
            #expect(try owner.trimmedForRoom() > 0)
            #expect(try guest.bodyPath(for: key("film")) == nil)
            withExtendedLifetime(reading) {}
        }
    }

    @Test("shares exclude the lock, and the lock shares", arguments: DiskKind.allCases)
    func locks(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let files = disk.fileSystem
        let root = try files.openRoot(disk.root, creating: true)
        let open = try (0..<3).map { _ in try files.open("file", in: root, mode: .openOrCreate) }
        #expect(try files.share(open[0]) && files.share(open[1]))
        #expect(try files.isLocked(open[0]) && files.isLocked(open[2]))
        #expect(try !files.lock(open[2]) && !files.lock(open[0]))
        files.close(open[1])
        #expect(try !files.isLocked(open[0]) && files.isLocked(open[2]))
        #expect(try files.lock(open[0]) && !files.share(open[2]))
        files.unlock(open[0])
        #expect(try !files.isLocked(open[2]) && files.lock(open[2]))
        files.close(open[2])
        #expect(try files.share(open[0]))
        files.close(open[0])
        files.close(root)
    }
}

extension DiskStore {
    /// Gives up blocks in use as a write in need of room would.
    ///
    /// - Returns: the bytes freed.
    fileprivate func trimmedForRoom() throws -> Int64 { giveUpColdBlocks(1 << 20) }
}
