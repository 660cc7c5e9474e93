import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// A disk that fails one call, whichever: nothing is worse than a miss or a `CacheError`.
@Suite("Disk: failing calls", .timeLimit(.minutes(10)))
struct DiskFailureTests {
    private static let errors: [Errno] = [
        .noSpace, .ioError, .diskQuotaExceeded, .readOnlyFileSystem, .tooManyOpenFiles,
    ]

    /// Together they fail every call, each with one of the errors; all five would take too long.
    @Test("each call of a workload fails once", arguments: errors.indices, [false, true])
    func eachCall(number: Int, hasClaim: Bool) throws {
        try run(Self.errors[number], hasClaim, from: number, stride: Self.errors.count, times: 1)
    }

    @Test("every call fails from some call on", arguments: errors.indices, [false, true])
    func fromSomeCallOn(number: Int, hasClaim: Bool) throws {
        try run(Self.errors[number], hasClaim, from: number, stride: 29, times: .max)
    }

    @Test(
        "what was written counts, also where the disk does not tell how much that is",
        arguments: [FileSystemError.Call.open, .inspect]
    )
    func charging(call: FileSystemError.Call) throws {
        let disk = TestDisk(.memory)
        let store = try disk.open()
        do {
            let entry = try store.makeEntry(for: key("a"), metadata: [], completeLength: 200_000)
            let first = try entry.beginWriting(at: 0)
            try first.write(bytes(65_536))
            first.end()
            let writer = try entry.beginWriting(at: 65_536)
            disk.memory.fail(call, with: .ioError, times: 100)
            let error = #expect(throws: CacheError.self) { try writer.write(bytes(65_536)) }
            #expect(error?.code == .localStorage)
            disk.memory.heal()
            #expect(disk.memory.allocatedBytes > 131_072)
            #expect(store.chargedBytes >= disk.memory.allocatedBytes)
            writer.end()
        }
        // What was only guessed is looked at.
        store.closeIdle()
        #expect(store.chargedBytes == disk.memory.allocatedBytes)
    }

    @Test("what the disk does not give at the start keeps its files and pins", arguments: errors)
    func withheld(_ errno: Errno) throws {
        let disk = TestDisk(.memory)
        let (film, text) = (bytes(200_000, seed: 1), bytes(100, seed: 2))
        do {
            let store = try disk.open()
            try store.store(film, for: key("film"), class: .pinned)
            try store.store(text, for: key("text"))
        }
        let allocated = disk.memory.allocatedBytes
        do {
            let store = try disk.open()
            disk.memory.fail(.read, with: errno, times: .max)
            let usage = try store.usage()
            #expect(usage.entries == 2)
            var found: [DiskFinding] = []
            _ = try store.verify(repair: true) { found.append($0) }
            #expect(found.map(\.kind) == [.damagedRecord, .damagedRecord])
            #expect(found.allSatisfy { !$0.isRepaired })
            disk.memory.heal()
            #expect(store.chargedBytes >= disk.memory.allocatedBytes)
            #expect(
                try firstDifference(store.entry(for: key("film"))?.read(200_000), film) == nil
            )
        }
        #expect(disk.memory.allocatedBytes >= allocated)
        let store = try disk.open()
        #expect(try store.verify(repair: false).damaged == 0)
        #expect(try store.entry(for: key("film"))?.isPinned == true)
        #expect(try store.entry(for: key("text"))?.isPinned == false)
        #expect(try firstDifference(store.entry(for: key("film"))?.read(200_000), film) == nil)
        #expect(try firstDifference(store.entry(for: key("text"))?.read(100), text) == nil)
    }

    private func run(
        _ errno: Errno,
        _ hasClaim: Bool,
        from start: Int,
        stride: Int,
        times: Int
    ) throws {
        let calm = TestDisk(.memory, hasClaim: hasClaim)
        Workload(calm, "without failures").run()
        let count = calm.memory.calls.count
        try #require(count > 100)
        for index in Swift.stride(from: start, to: count, by: stride) {
            let disk = TestDisk(.memory, hasClaim: hasClaim)
            let context = "\(errno), claim \(hasClaim), \(times) times after \(index) calls"
            disk.memory.fail(nil, with: errno, times: times, skipping: index)
            Workload(disk, context).run()
            disk.memory.heal()
            try checkHealth(disk, context)
        }
    }

    /// What is there must be right, what is charged must be true, and all must work again.
    private func checkHealth(_ disk: TestDisk, _ context: String) throws {
        let store = try disk.open()
        _ = try store.verify(repair: true)
        Workload(disk, context).check(store)
        try store.store(bytes(1000, seed: 9), for: key("new"))
        try store.store(bytes(100_000, seed: 9), for: key("new and large"))
        #expect(
            try firstDifference(store.entry(for: key("new"))?.read(2000), bytes(1000, seed: 9))
                == nil,
            "\(context)"
        )
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes, "\(context)")
        #expect(store.reservedBytes == 0, "\(context)")
    }

    @Test("with no descriptor left, idle ones are closed")
    func descriptors() throws {
        let disk = TestDisk(.memory)
        let store = try disk.open()
        for name in ["a", "b"] {
            try store.store(bytes(1000), for: key(name))
        }
        let open = disk.memory.openCount
        // The first call makes a directory, which needs no descriptor.
        disk.memory.fail(.create, with: .tooManyOpenFiles, skipping: 1)
        try store.store(bytes(1000), for: key("c"))
        #expect(disk.memory.openCount == open - 1)
        disk.memory.fail(.open, with: .tooManyOpenFilesInSystem)
        #expect(try firstDifference(store.entry(for: key("a"))?.read(1000), bytes(1000)) == nil)
    }

    @Test("a lease keeps its descriptor; where all are leased, the error says what to do")
    func leasedDescriptors() throws {
        let disk = TestDisk(.memory)
        let store = try disk.open()
        let lease = try store.store(bytes(1000), for: key("a"))
        // The first call makes a directory, which needs no descriptor.
        disk.memory.fail(.create, with: .tooManyOpenFiles, skipping: 1)
        let error = #expect(throws: CacheError.self) {
            try store.store(bytes(1000), for: key("b"))
        }
        #expect(error?.code == .localStorage)
        #expect(error?.message.contains("ulimit -n") == true)
        #expect(firstDifference(lease.read(1000), bytes(1000)) == nil)
    }

    @Test("on a full volume, entries are evicted once", arguments: [1000, 65_536, 300_000])
    func fullVolume(size: Int) throws {
        let disk = TestDisk(.memory)
        let store = try disk.open()
        for number in 0..<8 {
            try store.store(bytes(size), for: key("\(number)"))
        }
        disk.memory.fail(.write, with: .noSpace)
        try store.store(bytes(size, seed: 2), for: key("new"))
        #expect(
            try firstDifference(store.entry(for: key("new"))?.read(size), bytes(size, seed: 2))
                == nil
        )
        #expect(try store.entry(for: key("0")) == nil)
        #expect(try store.entry(for: key("7")) != nil)
        disk.memory.fail(.write, with: .diskQuotaExceeded, times: 2)
        #expect(throws: CacheError.self) { try store.store(bytes(size), for: key("newer")) }
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }
}

/// What an application does with a store, errors taken as they come.
private struct Workload {
    let disk: TestDisk
    let context: String

    init(_ disk: TestDisk, _ context: String) {
        self.disk = disk
        self.context = context
    }

    private static let bodies: [(name: String, size: Int)] = [
        ("empty", 0), ("small", 1000), ("inline", 65_536), ("large", 140_000),
    ]

    private static let contents = Dictionary(
        uniqueKeysWithValues: [0, 1000, 65_536, 140_000, 210_000].map {
            ($0, bytes($0, seed: UInt64($0)))
        }
    )

    private static func body(_ size: Int) -> [UInt8] { contents[size] ?? [] }

    func run() {
        if let store = attempt({ () throws(CacheError) in try disk.open() }) {
            write(store)
            check(store)
            change(store)
            check(store)
        }
        guard let again = attempt({ () throws(CacheError) in try disk.open() }) else { return }
        check(again)
    }

    private func write(_ store: DiskStore) {
        for (name, size) in Self.bodies {
            attempt { () throws(CacheError) in
                try store.store(Self.body(size), for: key(name))
            }
        }
        attempt { () throws(CacheError) in try partial(store) }
    }

    private func change(_ store: DiskStore) {
        attempt { () throws(CacheError) in
            try store.entry(for: key("small"))?.updateMetadata([4])
            try store.entry(for: key("large"))?.setPinned(true)
        }
        attempt { () throws(CacheError) in _ = try store.bodyPath(for: key("inline")) }
        attempt { () throws(CacheError) in
            try store.remove(key("small"))
            _ = try store.trim(to: 200_000)
            _ = try store.list()
        }
        store.persistUses()
    }

    private func partial(_ store: DiskStore) throws(CacheError) {
        let entry = try store.makeEntry(for: key("partial"), metadata: [1], completeLength: 210_000)
        let whole = Self.body(210_000)
        let writer = try entry.beginWriting(at: 65_536)
        try writer.write(whole[65_536..<200_000])
    }

    /// Every byte that a store gives must be the one that was stored.
    func check(_ store: DiskStore) {
        for (name, size) in Self.bodies + [("partial", 210_000)] {
            guard
                let entry = attempt({ () throws(CacheError) in try store.entry(for: key(name)) }),
                let entry
            else { continue }
            let whole = Self.body(size)
            for range in entry.storedRanges.ranges {
                let stored = entry.read(
                    at: range.lowerBound,
                    Int(range.upperBound - range.lowerBound)
                )
                #expect(whole.holds(stored, at: Int(range.lowerBound)), "\(name), \(context)")
            }
        }
    }

    /// Only a `CacheError` can come out, by the types; which one it is must be said.
    @discardableResult
    private func attempt<Result>(_ body: () throws(CacheError) -> Result) -> Result? {
        do throws(CacheError) {
            return try body()
        } catch {
            #expect([.localStorage, .notOwner].contains(error.code), "\(error), \(context)")
            return nil
        }
    }
}
