import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite("DiskStore: damage", .timeLimit(.minutes(10)))
struct DiskDamageTests {
    enum Damage: CaseIterable {
        case flip
        case truncate
        case empty
        case zero
        case extend
        case delete
        case garbage
    }

    @Test(
        "damage to any file is a gap or a miss, never a wrong byte",
        arguments: DiskKind.allCases,
        Damage.allCases
    )
    func damage(kind: DiskKind, damage: Damage) throws {
        var generator = SeededGenerator(seed: 7)
        for count in [0, 100, 65_536, 300_000] {
            for suffix in [".record", ".body"] {
                let disk = TestDisk(kind)
                do {
                    try disk.open().store(bytes(count), for: key("a"), metadata: [5])
                }
                guard let path = disk.paths(suffix).first else { continue }
                try apply(damage, path, disk, &generator)
                try checkOnlyRightBytes(disk, count)
            }
        }
    }

    @Test(
        "a path is that of the whole body or there is none, whatever has become of the file",
        arguments: DiskKind.allCases,
        Damage.allCases
    )
    func path(kind: DiskKind, damage: Damage) throws {
        var generator = SeededGenerator(seed: 8)
        for isOpen in [false, true] {
            let disk = TestDisk(kind)
            var store: DiskStore? = try disk.open()
            try store?.store(bytes(300_000), for: key("a"))
            if !isOpen { store = nil }
            let body = try #require(disk.paths(".body").first)
            try apply(damage, body, disk, &generator)
            let user = try store ?? disk.open()
            guard let path = try user.bodyPath(for: key("a")) else { continue }
            let relative = String(path.string.dropFirst(disk.root.string.count + 1))
            // A process that has written or read the bytes does not read them again.
            guard !isOpen || damage == .extend || damage == .delete else { continue }
            #expect(try firstDifference(disk.content(relative), bytes(300_000)) == nil)
        }
    }

    private func apply(
        _ damage: Damage,
        _ path: String,
        _ disk: TestDisk,
        _ generator: inout SeededGenerator
    ) throws {
        var content = try disk.content(path)
        switch damage {
        case .flip:
            guard !content.isEmpty else { return }
            content[Int.random(in: content.indices, using: &generator)] ^= 1
        case .truncate: content.removeLast(content.count / 2)
        case .empty: content = []
        case .zero: content = [UInt8](repeating: 0, count: content.count)
        case .extend: content += bytes(70_000)
        case .garbage: content = bytes(content.count, seed: 99)
        case .delete: return try disk.delete(path)
        }
        try disk.write(content, path)
    }

    /// What is read is right; what is missing can be written again; then everything is well.
    private func checkOnlyRightBytes(_ disk: TestDisk, _ count: Int) throws {
        let body = bytes(count)
        let store = try disk.open()
        if let entry = try store.entry(for: key("a")) {
            for offset in stride(from: 0, through: count, by: 50_000) {
                let read = entry.read(at: Int64(offset), count)
                #expect(Array(body[offset..<(offset + read.count)]) == read)
            }
            // A read loses one damaged block at most: fill and read until all of it is there.
            for _ in 0..<6 where entry.read(count) != body {
                while let gap = entry.nextGap(in: 0..<Int64(count)) {
                    let writer = try entry.beginWriting(at: gap.lowerBound)
                    try writer.write(body[Int(gap.lowerBound)..<Int(gap.upperBound)])
                }
            }
            #expect(entry.read(count) == body)
        } else {
            try store.store(body, for: key("a"))
        }
        store.closeIdle()
        let entry = try #require(try store.entry(for: key("a")))
        #expect(entry.isComplete)
        #expect(entry.read(count) == body)
        #expect(try store.verify(repair: true).damaged == 0)
        #expect(try store.usage().entries == 1)
    }

    @Test("only the damaged block is lost", arguments: DiskKind.allCases)
    func oneBlock(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        do {
            try disk.open().store(bytes(300_000), for: key("a"))
        }
        let path = try #require(disk.paths(".body").first)
        var content = try disk.content(path)
        content[100_000] ^= 0x80
        try disk.write(content, path)
        let store = try disk.open()
        let found = try store.verify(repair: false)
        #expect(found == DiskVerification(entries: 1, blocks: 5, damaged: 1, repaired: 0))
        let entry = try #require(try store.entry(for: key("a")))
        #expect(entry.isComplete)
        #expect(firstDifference(entry.read(300_000), Array(bytes(300_000)[..<65_536])) == nil)
        #expect(entry.storedRanges.ranges == [0..<65_536, 131_072..<300_000])
        #expect(store.counters.damagedBlocks == 1)
        #expect(try store.verify(repair: true).repaired == 1)
        #expect(try store.verify(repair: false).damaged == 0)
        try entry.beginWriting(at: 65_536).write(bytes(300_000)[65_536..<131_072])
        #expect(firstDifference(entry.read(300_000), bytes(300_000)) == nil)
    }

    @Test(
        "records and bodies of two entries, exchanged, are the bytes of neither",
        arguments: DiskKind.allCases,
        [1000, 200_000]
    )
    func swapped(kind: DiskKind, count: Int) throws {
        for suffix in [".record", ".body"] {
            let disk = TestDisk(kind)
            do {
                let store = try disk.open()
                try store.store(bytes(count, seed: 1), for: key("a"))
                try store.store(bytes(count, seed: 2), for: key("b"))
            }
            let paths = disk.paths(suffix)
            guard paths.count == 2 else { continue }
            let contents = try paths.map { try disk.content($0) }
            try disk.write(contents[1], paths[0])
            try disk.write(contents[0], paths[1])
            let store = try disk.open()
            for (name, seed) in [("a", 1), ("b", 2)] as [(String, UInt64)] {
                guard let entry = try store.entry(for: key(name)) else { continue }
                let read = entry.read(count)
                #expect(read == Array(bytes(count, seed: seed)[..<read.count]))
                #expect(read.isEmpty)
            }
        }
    }

    @Test(
        "two keys under one name: the key decides",
        arguments: DiskKind.allCases,
        [1000, 200_000]
    )
    func collision(kind: DiskKind, count: Int) throws {
        let disk = TestDisk(kind)
        var options = disk.options()
        options.digest = { _ in MD5Digest(high: 0x0123_4567_89AB_CDEF, low: 1) }
        let store = try disk.open(options)
        let first = try store.store(bytes(count, seed: 1), for: key("a"))
        #expect(try store.entry(for: key("b")) == nil)
        if case .ready(let entry) = store.entryWithoutBlocking(for: key("b")) {
            #expect(entry === nil)
        }
        #expect(try !store.remove(key("b")))
        try store.store(bytes(count, seed: 2), for: key("b"))
        #expect(try store.entry(for: key("a")) == nil)
        #expect(
            try firstDifference(store.entry(for: key("b"))?.read(count), bytes(count, seed: 2))
                == nil
        )
        #expect(firstDifference(first.read(count), bytes(count, seed: 1)) == nil)
        #expect(try store.usage().entries == 1)
    }

    @Test("what a crash left is swept before the first write", arguments: DiskKind.allCases)
    func sweep(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        do { try disk.open().store(bytes(1000), for: key("a")) }
        let hex = String(repeating: "0", count: 32)
        try disk.write([1], "staging/\(hex).0123456789abcdef.record")
        try disk.write(bytes(100_000), "entries/00/\(hex).0123456789abcdef.body")
        try disk.write([1, 2], "entries/00/\(hex).record")
        try disk.write([1, 2], "entries/00/\(hex).0123456789ABCDEF.body")
        let store = try disk.open()
        #expect(try store.usage().entries == 1)
        #expect(disk.paths("").count == 4)
        #expect(try store.usage().bytes == disk.allocatedBytes - 4096)
        #expect(store.counters.damagedRecords == 1)
    }
}
