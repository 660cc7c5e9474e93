import Synchronization
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite("DiskStore: room", .timeLimit(.minutes(10)))
struct DiskSpaceTests {
    @Test(
        "the entry used least recently leaves first, pinned and leased ones stay",
        arguments: DiskKind.allCases
    )
    func order(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let evicted = Mutex<[String]>([])
        var options = disk.options(limit: 1 << 20)
        options.didLeave = { gone in
            guard case .evicted = gone.cause, let key = gone.key else { return }
            evicted.withLock { $0.append(key.string) }
        }
        let store = try disk.open(options)
        try store.store(bytes(60_000), for: key("pinned"), class: .pinned)
        let leased = try store.store(bytes(60_000), for: key("leased"))
        for index in 0..<6 {
            disk.time.advance(by: .seconds(1))
            try store.store(bytes(60_000), for: key("\(index)"))
        }
        try store.store(bytes(60_000), for: key("prefetched"), class: .prefetched)
        try store.store(bytes(60_000), for: key("prefetched and used"), class: .prefetched)
        disk.time.advance(by: .seconds(1))
        _ = try store.entry(for: key("prefetched and used"))
        _ = try store.entry(for: key("0"))
        // 10 x 64 KiB: from here on each further store evicts.
        var index = 6
        while evicted.withLock({ $0.count }) < 4 {
            try store.store(bytes(60_000), for: key("\(index)"))
            index += 1
            #expect(try store.usage().bytes <= 1 << 20)
        }
        let names = evicted.withLock { $0.map { $0.split(separator: ":").last.map(String.init) } }
        #expect(Array(names.prefix(4)) == ["prefetched", "1", "2", "3"])
        #expect(try store.entry(for: key("pinned")) != nil)
        #expect(try store.entry(for: key("leased")) === leased)
        #expect(try store.entry(for: key("1")) == nil)
    }

    @Test("recency survives a restart", arguments: DiskKind.allCases)
    func recency(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        do {
            let store = try disk.open()
            for index in 0..<5 {
                try store.store(bytes(1000), for: key("\(index)"))
                disk.time.advance(by: .seconds(100))
            }
            _ = try store.entry(for: key("0"))
            _ = try store.entry(for: key("2"))
        }
        let store = try disk.open()
        try store.trim(to: disk.allocatedBytes - 3 * 4096)
        let left = try store.list().map(\.key.string).sorted()
        #expect(left == [key("0").string, key("2").string])
    }

    @Test("what can never fit is refused, and nothing else is lost", arguments: DiskKind.allCases)
    func tooLarge(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open(limit: 1 << 20)
        try store.store(bytes(1000), for: key("a"))
        let error = #expect(throws: CacheError.self) {
            try store.makeEntry(for: key("b"), metadata: [], completeLength: 2 << 20)
        }
        #expect(error?.code == .localStorage)
        let unknown = try store.makeEntry(for: key("c"), metadata: [], completeLength: nil)
        let writer = try unknown.beginWriting(at: 0)
        #expect(throws: CacheError.self) { try writer.write(bytes(2 << 20)) }
        #expect(try store.usage().bytes <= 1 << 20)
    }

    @Test("a full cache of pinned entries refuses, and says why", arguments: DiskKind.allCases)
    func pinnedOnly(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try disk.open(limit: 240 << 10)
        for index in 0..<3 {
            try store.store(bytes(60_000), for: key("\(index)"), class: .pinned)
        }
        let error = #expect(throws: CacheError.self) {
            try store.store(bytes(60_000), for: key("more"))
        }
        #expect(error?.code == .localStorage)
        #expect(error?.message.contains("pinned") == true)
        #expect(try store.list().count == 3)
        try store.removeAll()
        try store.store(bytes(60_000), for: key("more"))
    }

    @Test("below the floor of free space nothing is stored")
    func floor() throws {
        let disk = TestDisk(.memory)
        disk.memory.setCapacity(1 << 20)
        var options = disk.options()
        options.minimumFree = 512 << 10
        let store = try disk.open(options)
        try store.store(bytes(200_000), for: key("a"), class: .pinned)
        let error = #expect(throws: CacheError.self) {
            try store.store(bytes(400_000), for: key("b"))
        }
        #expect(error?.code == .localStorage)
        disk.memory.setCapacity(2 << 20)
        disk.time.advance(by: .seconds(1))
        try store.store(bytes(400_000), for: key("b"))
    }

    @Test("a limit that is not positive is an error", arguments: [0, -1])
    func limit(limit: Int64) {
        let error = #expect(throws: CacheError.self) { try TestDisk(.memory).open(limit: limit) }
        #expect(error?.code == .invalidArgument)
    }

    @Test(
        "the accounting equals du after every step",
        .tags(.seeded),
        arguments: DiskKind.allCases,
        TestCases.few(1, of: [1, 2, 3] as [UInt64])
    )
    func accounting(kind: DiskKind, seed: UInt64) throws {
        let disk = TestDisk(kind)
        var generator = SeededGenerator(seed: seed)
        let store = try disk.open(limit: 3 << 20)
        var contents: [Int: [UInt8]] = [:]
        for step in 0..<150 {
            let number = Int.random(in: 0..<20, using: &generator)
            let key = key("\(number)")
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<4:
                let size =
                    [100, 5000, 65_536, 70_000, 400_000].randomElement(using: &generator) ?? 0
                let body = bytes(size, seed: UInt64(step))
                try store.store(body, for: key)
                contents[number] = body
            case 4:
                let body = bytes(300_000, seed: UInt64(step))
                let entry = try store.makeEntry(for: key, metadata: [], completeLength: 300_000)
                let start = Int.random(in: 0..<4, using: &generator) * 65_536
                let writer = try entry.beginWriting(at: Int64(start))
                try writer.write(body[start..<Int.random(in: start..<300_000, using: &generator)])
                contents[number] = body
            case 5:
                try store.remove(key)
            case 6:
                try store.entry(for: key)?.updateMetadata(
                    bytes(Int.random(in: 0..<9000, using: &generator))
                )
            case 7:
                _ = try store.bodyPath(for: key)
            case 8:
                try store.trim(to: Int64.random(in: 0..<(3 << 20), using: &generator))
            default:
                // A guest beside the owner reads the same.
                let guest = try disk.open(limit: 3 << 20)
                #expect(!guest.access.canWrite)
                #expect(
                    try guest.entry(for: key)?.storedRanges == store.entry(for: key)?.storedRanges
                )
            }
            if let entry = try store.entry(for: key), let body = contents[number] {
                for range in entry.storedRanges.ranges {
                    let read = entry.read(
                        at: range.lowerBound,
                        Int(range.upperBound - range.lowerBound)
                    )
                    let isRight = body.holds(read, at: Int(range.lowerBound))
                    #expect(
                        isRight && Int64(read.count) == range.upperBound - range.lowerBound,
                        "seed \(seed), step \(step): wrong bytes"
                    )
                }
            }
            // What was replaced while open is charged until it is closed; nothing is open here but
            // what the descriptor cache holds.
            store.closeIdle()
            let usage = try store.usage()
            #expect(usage.bytes == disk.allocatedBytes, "seed \(seed), step \(step)")
            #expect(usage.bytes <= 3 << 20, "seed \(seed), step \(step)")
            #expect(store.reservedBytes == 0, "seed \(seed), step \(step)")
        }
        #expect(try store.verify(repair: false).damaged == 0)
    }
}

extension DiskStore {
    /// Lets go of entries that are not in use.
    func closeIdle() {
        for _ in 0..<2 {
            let idle = state.withLock { shrink(&$0, to: 0, maximumDormantCost: 0) }
            retire(idle)
        }
    }

    var reservedBytes: Int64 { state.withLock { $0.space.reserved } }

    /// What the ledger says without a look at the disk.
    var chargedBytes: Int64 { state.withLock { $0.space.bytes } }
}
