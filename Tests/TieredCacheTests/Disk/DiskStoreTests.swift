import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite("DiskStore", .timeLimit(.minutes(10)))
struct DiskStoreTests {
    @Test(
        "a stored body is read back, in this store and in the next",
        arguments: DiskKind.allCases,
        [0, 1, 4096, 65_535, 65_536, 65_537, 1 << 20, 3_000_001]
    )
    func roundTrip(kind: DiskKind, count: Int) throws {
        let disk = TestDisk(kind)
        let body = bytes(count)
        do {
            let store = try disk.open()
            let made = try store.store(body, for: key("a"), metadata: [7, 8, 9])
            #expect(made.isComplete)
            #expect(firstDifference(made.read(count + 10), body) == nil)
            #expect(try store.entry(for: key("b")) == nil)
        }
        let store = try disk.open()
        let entry = try #require(try store.entry(for: key("a")))
        #expect(entry.metadata == [7, 8, 9])
        #expect(entry.completeLength == Int64(count))
        #expect(entry.isComplete)
        #expect(firstDifference(entry.read(count + 10), body) == nil)
        #expect(entry.read(at: Int64(count / 2), count) == Array(body[(count / 2)...]))
        #expect(entry.read(at: Int64(count), 10) == [])
        #expect(entry.read(at: -1, 10) == [])
        #expect(try store.usage().entries == 1)
        #expect(try store.usage().bytes == disk.allocatedBytes)
        #expect(
            try store.verify(repair: false)
                == DiskVerification(
                    entries: 1,
                    blocks: (count + 65_535) / 65_536
                )
        )
    }

    @Test("a small body is one file, a large one two", arguments: DiskKind.allCases)
    func layout(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open()
        try store.store(bytes(65_536), for: key("small"))
        #expect(disk.paths(".record").count == 1)
        #expect(disk.paths(".body").isEmpty)
        try store.store(bytes(65_537), for: key("large"))
        #expect(disk.paths(".record").count == 2)
        let body = try #require(disk.paths(".body").first)
        #expect(try firstDifference(disk.content(body), bytes(65_537)) == nil)
        #expect(disk.paths("").allSatisfy { !$0.hasPrefix("staging/") })
    }

    @Test(
        "a small body that is streamed becomes one file when it is complete",
        arguments: DiskKind.allCases
    )
    func smallStream(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open()
        let entry = try store.makeEntry(for: key("a"), metadata: [], completeLength: 1000)
        let writer = try entry.beginWriting(at: 0)
        try writer.write(bytes(1000)[..<600])
        #expect(firstDifference(entry.read(2000), Array(bytes(1000)[..<600])) == nil)
        #expect(entry.storedRange(at: 599) == 0..<600)
        #expect(!entry.isComplete)
        #expect(disk.paths(".record").isEmpty)
        try writer.write(bytes(1000)[600...])
        #expect(entry.isComplete)
        #expect(disk.paths(".record").count == 1)
        #expect(disk.paths(".body").isEmpty)
        #expect(throws: CacheError.self) { try writer.write([1]) }
        writer.end()
        #expect(try disk.open().access.canWrite == false)
        #expect(firstDifference(entry.read(2000), bytes(1000)) == nil)
    }

    @Test(
        "a body of unknown length ends where the writer says",
        arguments: DiskKind.allCases,
        [0, 10, 65_536, 200_000]
    )
    func unknownLength(kind: DiskKind, count: Int) throws {
        let disk = TestDisk(kind)
        do {
            let store = try disk.open()
            let entry = try store.makeEntry(for: key("a"), metadata: [1], completeLength: nil)
            let writer = try entry.beginWriting(at: 0)
            try writer.write(bytes(count))
            #expect(firstDifference(entry.read(count + 1), bytes(count)) == nil)
            #expect(!entry.isComplete)
            try writer.finish()
            #expect(entry.isComplete)
            #expect(entry.completeLength == Int64(count))
            #expect(try store.usage().bytes == disk.allocatedBytes)
        }
        let entry = try #require(try disk.open().entry(for: key("a")))
        #expect(entry.isComplete)
        #expect(firstDifference(entry.read(count + 1), bytes(count)) == nil)
    }

    @Test(
        "a partial body keeps its blocks over a restart, and the rest is a gap",
        arguments: DiskKind.allCases
    )
    func partial(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let body = bytes(300_000)
        do {
            let store = try disk.open()
            let entry = try store.makeEntry(for: key("a"), metadata: [], completeLength: 300_000)
            let writer = try entry.beginWriting(at: 65_536)
            try writer.write(body[65_536..<(65_536 * 3 + 100)])
            #expect(entry.storedRange(at: 65_536) == 65_536..<196_708)
            #expect(
                firstDifference(entry.read(at: 196_600, 1000), Array(body[196_600..<196_708]))
                    == nil
            )
            #expect(entry.read(at: 0, 10) == [])
            #expect(try store.entry(for: key("a")) === entry)
            #expect(try store.bodyPath(for: key("a")) == nil)
        }
        let store = try disk.open()
        let entry = try #require(try store.entry(for: key("a")))
        #expect(entry.storedRanges.ranges == [65_536..<196_608])
        #expect(entry.nextGap(in: 0..<300_000) == 0..<65_536)
        #expect(entry.nextGap(in: 70_000..<300_000) == 196_608..<300_000)
        #expect(
            firstDifference(entry.read(at: 100_000, 1000), Array(body[100_000..<101_000])) == nil
        )
        try entry.beginWriting(at: 0).write(body)
        #expect(entry.isComplete)
        #expect(firstDifference(entry.read(400_000), body) == nil)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("several writers of one entry run at once", arguments: DiskKind.allCases)
    func writers(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open()
        let body = bytes(500_000)
        let entry = try store.makeEntry(for: key("a"), metadata: [], completeLength: 500_000)
        let first = try entry.beginWriting(at: 0)
        let second = try entry.beginWriting(at: 262_144)
        for start in stride(from: 0, to: 262_144, by: 8192) {
            try first.write(body[start..<(start + 8192)])
            let other = start + 262_144
            if other < 500_000 { try second.write(body[other..<min(other + 8192, 500_000)]) }
        }
        #expect(entry.isComplete)
        // Bytes that are stored already are dropped.
        try first.write([UInt8](repeating: 0, count: 65_536))
        #expect(firstDifference(entry.read(500_000), body) == nil)
        #expect(throws: CacheError.self) { try entry.beginWriting(at: 100) }
        #expect(throws: CacheError.self) { try entry.beginWriting(at: 524_288) }
        #expect(throws: CacheError.self) { try entry.beginWriting(at: -65_536) }
    }

    @Test(
        "readers of a replaced or removed entry read on",
        arguments: DiskKind.allCases,
        [1000, 200_000]
    )
    func generations(kind: DiskKind, count: Int) throws {
        let disk = TestDisk(kind)
        let store = try disk.open()
        let old = try store.store(bytes(count, seed: 1), for: key("a"))
        let new = try store.store(bytes(count, seed: 2), for: key("a"))
        #expect(old.generation != new.generation)
        #expect(old.isSuperseded && !new.isSuperseded)
        #expect(firstDifference(old.read(count), bytes(count, seed: 1)) == nil)
        #expect(try store.entry(for: key("a")) === new)
        #expect(try store.remove(key("a")))
        #expect(try !store.remove(key("a")))
        #expect(try store.entry(for: key("a")) == nil)
        #expect(firstDifference(new.read(count), bytes(count, seed: 2)) == nil)
        #expect(disk.paths(".record").isEmpty && disk.paths(".body").isEmpty)
    }

    @Test(
        "a writer goes on after its entry was removed",
        arguments: DiskKind.allCases,
        [1000, 200_000]
    )
    func removedWhileFilling(kind: DiskKind, count: Int) throws {
        let disk = TestDisk(kind)
        let store = try disk.open()
        do {
            let entry = try store.makeEntry(
                for: key("a"),
                metadata: [],
                completeLength: Int64(count)
            )
            let writer = try entry.beginWriting(at: 0)
            try writer.write(bytes(count)[..<(count / 2)])
            #expect(try store.remove(key("a")))
            try writer.write(bytes(count)[(count / 2)...])
            #expect(firstDifference(entry.read(count), bytes(count)) == nil)
            #expect(try store.entry(for: key("a")) == nil)
        }
        #expect(disk.paths(".record").isEmpty && disk.paths(".body").isEmpty)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("freshening and pinning keep the body", arguments: DiskKind.allCases, [1000, 200_000])
    func freshen(kind: DiskKind, count: Int) throws {
        let disk = TestDisk(kind)
        do {
            let store = try disk.open()
            let entry = try store.store(bytes(count), for: key("a"), metadata: [1])
            try entry.updateMetadata([UInt8](repeating: 9, count: 5000))
            try entry.setPinned(true)
            #expect(entry.metadata.count == 5000)
            #expect(firstDifference(entry.read(count), bytes(count)) == nil)
        }
        let store = try disk.open()
        #expect(try store.usage().bytes == disk.allocatedBytes)
        let entry = try #require(try store.entry(for: key("a")))
        #expect(entry.metadata == [UInt8](repeating: 9, count: 5000))
        #expect(entry.isPinned)
        #expect(firstDifference(entry.read(count), bytes(count)) == nil)
        #expect(try store.trim(to: 0) > Int64(count))
        try entry.setPinned(false)
        #expect(try store.list().map(\.isPinned) == [false])
    }

    @Test(
        "a complete body has a path, also one kept in its record",
        arguments: DiskKind.allCases,
        [0, 1000, 200_000]
    )
    func paths(kind: DiskKind, count: Int) throws {
        let disk = TestDisk(kind)
        do {
            let store = try disk.open()
            let entry = try store.store(bytes(count), for: key("a"))
            let path = try #require(try store.bodyPath(for: key("a")))
            #expect(try store.bodyPath(for: key("a")) == path)
            let relative = String(path.string.dropFirst(disk.root.string.count + 1))
            #expect(try firstDifference(disk.content(relative), bytes(count)) == nil)
            #expect(firstDifference(entry.read(count), bytes(count)) == nil)
            #expect(try store.bodyPath(for: key("none")) == nil)
        }
        let store = try disk.open()
        #expect(
            try firstDifference(#require(try store.entry(for: key("a"))).read(count), bytes(count))
                == nil
        )
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("everything is removed, files that are not ours stay", arguments: DiskKind.allCases)
    func removeAll(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open()
        let foreign = ["notes.txt", "entries/README", "entries/ab/0123.record", "staging/mine"]
        for path in foreign {
            try disk.write([1, 2, 3], path)
        }
        for index in 0..<20 {
            try store.store(
                bytes(index * 7000),
                for: key("\(index)"),
                class: index == 3 ? .pinned : []
            )
        }
        #expect(try store.list().count == 20)
        try store.removeAll()
        #expect(try store.list().isEmpty)
        #expect(disk.files.keys.sorted() == (foreign + ["FORMAT", "LOCK"]).sorted())
        for path in foreign {
            #expect(try disk.content(path) == [1, 2, 3])
        }
        #expect(try store.usage().entries == 0)
    }
}
