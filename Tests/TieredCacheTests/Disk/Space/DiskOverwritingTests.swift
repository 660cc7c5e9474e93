import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Metadata that are changed where they stand.
@Suite("Disk: metadata written over", .timeLimit(.minutes(10)))
struct DiskOverwritingTests {
    private static let sizes = [0, 1000, 200_000]

    /// A store with the entry `a`, whose directory is in the index.
    private func storeWithEntry(
        _ disk: TestDisk,
        size: Int,
        metadata: [UInt8] = [1, 2, 3],
        class entryClass: DiskEntryClass = []
    ) throws -> (DiskStore, DiskEntry) {
        let store = try disk.open()
        let entry = try store.store(
            bytes(size),
            for: key("a"),
            metadata: metadata,
            class: entryClass
        )
        return (store, entry)
    }

    @Test(
        "Metadata as long as before need no new file, and are there after a restart",
        arguments: DiskKind.allCases,
        sizes
    )
    func overwritten(kind: DiskKind, size: Int) throws {
        let disk = TestDisk(kind)
        do {
            let (store, entry) = try storeWithEntry(disk, size: size)
            let file = try #require(disk.paths(".record").first)
            let before = try disk.content(file)
            try entry.updateMetadata([4, 5, 6])
            #expect(entry.metadata == [4, 5, 6])
            let after = try disk.content(file)
            #expect(after.count == before.count)
            // The last use, and all behind the head, is as it was.
            #expect(after[16..<24] == before[16..<24])
            let end = Int(entry.record.tableOffset)
            #expect(firstDifference(Array(after[end...]), Array(before[end...])) == nil)
            withExtendedLifetime(store) {}
        }
        let entry = try #require(try disk.open().entry(for: key("a")))
        #expect(entry.metadata == [4, 5, 6])
        #expect(firstDifference(entry.read(size + 1), bytes(size)) == nil)
    }

    @Test("No file is made and no name is changed")
    func calls() throws {
        let disk = TestDisk(.memory)
        let (store, entry) = try storeWithEntry(disk, size: 1000)
        let before = disk.memory.calls.count
        try entry.updateMetadata([4, 5, 6])
        let calls = disk.memory.calls.dropFirst(before).map(\.call)
        #expect(calls.contains(.write))
        #expect(!calls.contains(.create) && !calls.contains(.rename) && !calls.contains(.remove))
        withExtendedLifetime(store) {}
    }

    @Test(
        "What is verified stays so: an entry that rests needs no second look at its bytes",
        arguments: DiskKind.allCases
    )
    func staysVerified(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        var options = disk.options()
        options.maximumOpenEntries = 1
        let store = try disk.open(options)
        try store.store(bytes(1000), for: key("a"))
        #expect(try store.entry(for: key("a"))?.read(1000).count == 1000)
        try store.entry(for: key("a"))?.updateMetadata([4, 5, 6])
        try store.store(bytes(1000, seed: 2), for: key("b"))
        try #require(store.isDormant(key("a")))
        guard case .ready(let entry?) = store.entryWithoutBlocking(for: key("a")) else {
            Issue.record("no hit")
            return
        }
        #expect(entry.metadata == [4, 5, 6])
        #expect(entry.readCached(1000) == .ready(bytes(1000)))
    }

    @Test("Metadata of another length, of what is pinned, and behind a page are replaced")
    func replaced() throws {
        let long = [UInt8](repeating: 7, count: 5000)
        let cases: [(old: [UInt8], new: [UInt8], class: DiskEntryClass)] = [
            ([1, 2, 3], [4, 5], []), ([1, 2, 3], [4, 5, 6], .pinned),
            (long, long.map { $0 + 1 }, []),
        ]
        for (old, new, entryClass) in cases {
            let disk = TestDisk(.memory)
            let (store, entry) = try storeWithEntry(
                disk,
                size: 1000,
                metadata: old,
                class: entryClass
            )
            let before = disk.memory.calls.count
            try entry.updateMetadata(new)
            #expect(disk.memory.calls.dropFirst(before).map(\.call).contains(.rename))
            #expect(entry.metadata == new)
            #expect(entry.isPinned == (entryClass == .pinned))
            withExtendedLifetime(store) {}
        }
    }

    @Test("A record that another program has put there is not written over")
    func foreign() throws {
        let disk = TestDisk(.memory)
        let (store, entry) = try storeWithEntry(disk, size: 1000)
        let file = try #require(disk.paths(".record").first)
        var other = try disk.content(file)
        other[32] ^= 0xFF  // Another generation.
        try disk.write(other, file)
        let before = disk.memory.calls.count
        try entry.updateMetadata([4, 5, 6])
        // It is replaced as a whole, so that no head of ours stands before bytes that are not.
        #expect(disk.memory.calls.dropFirst(before).map(\.call).contains(.rename))
        withExtendedLifetime(store) {}
        let again = try #require(try disk.open().entry(for: key("a")))
        #expect(again.metadata == [4, 5, 6])
        #expect(firstDifference(again.read(1001), bytes(1000)) == nil)
    }

    @Test("A file that another program has put there does not count as verified")
    func foreignBody() throws {
        let disk = TestDisk(.memory)
        var options = disk.options()
        options.maximumOpenEntries = 1
        let store = try disk.open(options)
        try store.store(bytes(1000), for: key("a"))
        #expect(try store.entry(for: key("a"))?.read(1000).count == 1000)
        let file = try #require(disk.paths(".record").first)
        var other = try disk.content(file)
        other[other.count - 1] ^= 0xFF
        try disk.delete(file)
        try disk.write(other, file)
        try store.entry(for: key("a"))?.updateMetadata([4, 5, 6])
        try store.store(bytes(1000, seed: 2), for: key("b"))
        #expect(
            try firstDifference(store.entry(for: key("a"))?.read(1000), bytes(1000)) == nil
        )
    }

    @Test("A reader that meets a part of a change looks once more")
    func torn() throws {
        let disk = TestDisk(.memory)
        do {
            let (store, _) = try storeWithEntry(disk, size: 1000)
            store.close()
        }
        let file = try #require(disk.paths(".record").first)
        let whole = try disk.content(file)
        var part = whole
        part[Record.fixedLength + key("a").string.utf8.count] ^= 0xFF
        try disk.write(part, file)
        let reads = Guarded(0)
        // Between the first look and the second the owner is done with its write.
        let watched = WatchedFileSystem(disk.memory, isCold: true) { call, _ in
            guard call == .read,
                reads.withLock({
                    $0 += 1
                    return $0
                }) == 2
            else { return }
            do { try disk.write(whole, file) } catch { Issue.record(error) }
        }
        let entries = try watched.open(
            "entries",
            in: watched.openRoot(disk.root, creating: false),
            mode: .directory
        )
        var reader = RecordReader(fileSystem: watched, entries: entries, blocking: true)
        defer { reader.close() }
        guard
            case .ready(let found?) = try reader.open(
                EntryName(digest: disk.options().digest(key("a"))),
                expecting: key("a")
            )
        else {
            Issue.record("no record")
            return
        }
        #expect(found.record.metadata == [1, 2, 3])
        #expect(!reader.isDamaged)
        #expect(reads.withLock { $0 } == 2)
    }
}
