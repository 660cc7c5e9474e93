import Foundation
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// A power cut between any two calls that change the disk, with every state that it may leave.
///
/// Where there are at most `outcomes` states all of them are looked at, otherwise so many by a
/// seeded die. `TIEREDCACHE_CRASH_OUTCOMES` sets how many.
@Suite("Disk: power cuts", .timeLimit(.minutes(10)))
struct DiskCrashTests {
    private static let outcomes =
        ProcessInfo.processInfo.environment["TIEREDCACHE_CRASH_OUTCOMES"].flatMap { Int($0) }
        ?? (TestCases.all ? 100 : 6)

    @Test(
        "after a power cut at any call: right bytes, true accounts, no leaks",
        .tags(.seeded),
        arguments: CrashCase.all
    )
    func everyCall(crash: CrashCase) throws {
        let seed: UInt64 = 11
        let memory = InMemoryFileSystem(time: ManualTimeSource(), remembersUnsynced: true)
        var points: [InMemoryFileSystem] = []
        do {
            try crash.plant(on: memory)
            let disk = CrashDisk(memory)
            let store = crash.beginsOpen ? try disk.open(hasClaim: crash.hasClaim) : nil
            if let store { try crash.prepare(store) }
            memory.syncEverything()
            points = try memory.crashPoints {
                try crash.act(store ?? disk.open(hasClaim: crash.hasClaim))
            }
        }
        #expect(points.count > 1)
        var states = 0
        for (number, point) in points.enumerated() {
            let (disks, _) = point.afterCrashes(atMost: Self.outcomes, seed: seed)
            for (outcome, disk) in disks.enumerated() {
                let context = "\(crash.name), call \(number), outcome \(outcome), seed \(seed)"
                try CrashDisk(disk).check(crash, call: context)
            }
            states += disks.count
        }
        #expect(states > points.count, "a power cut that changes nothing")
    }

    @Test(
        "what was pinned and is complete survives any power cut after that",
        arguments: [1000, 200_000]
    )
    func pinned(count: Int) throws {
        let memory = InMemoryFileSystem(time: ManualTimeSource(), remembersUnsynced: true)
        let store = try CrashDisk(memory).open()
        try store.store(bytes(count), for: key("at once"), class: .pinned)
        let late = try store.store(bytes(count), for: key("later"))
        try late.setPinned(true)
        let filled = try store.makeEntry(
            for: key("filled"),
            metadata: [],
            completeLength: Int64(count),
            class: .pinned
        )
        try filled.beginWriting(at: 0).write(bytes(count))
        for outcome in [CrashOutcome.unsyncedLost] + (0..<50).map({ .mixed(seed: $0) }) {
            let again = try CrashDisk(memory.afterCrash(outcome)).open()
            for name in ["at once", "later", "filled"] {
                let entry = try #require(try again.entry(for: key(name)), "\(name), \(outcome)")
                #expect(entry.isPinned && entry.isComplete, "\(name), \(outcome)")
                #expect(
                    firstDifference(entry.read(count), bytes(count)) == nil,
                    "\(name), \(outcome)"
                )
            }
        }
    }
}

/// What fails to reach the medium leaves what was promised before.
@Suite("Disk: power cuts after a sync has failed", .timeLimit(.minutes(10)))
struct DiskSyncFailureTests {
    private static let outcomes = [CrashOutcome.unsyncedLost] + (0..<20).map { .mixed(seed: $0) }
    private static let old = bytes(200_000)

    private static func expectPinned(
        _ memory: InMemoryFileSystem,
        _ bodies: [[UInt8]: [UInt8]],
        _ context: String
    ) throws {
        for outcome in outcomes {
            let context = "\(context), \(outcome)"
            let store = try CrashDisk(memory.afterCrash(outcome)).open()
            let entry = try #require(try store.entry(for: key("a")), "\(context)")
            #expect(entry.isPinned && entry.isComplete, "\(context)")
            #expect(entry.read(200_001) == bodies[entry.metadata], "\(context)")
        }
    }

    @Test(
        "The next generation of what is pinned, whichever sync fails",
        arguments: [1000, 150_000]
    )
    func succession(count: Int) throws {
        for skipping in 0..<8 {
            let memory = InMemoryFileSystem(time: ManualTimeSource(), remembersUnsynced: true)
            let store = try CrashDisk(memory).open()
            try store.store(Self.old, for: key("a"), metadata: [1], class: .pinned)
            let new = bytes(count, seed: 2)
            memory.fail(.sync, with: .ioError, skipping: skipping)
            do throws(CacheError) {
                try store.store(new, for: key("a"), metadata: [2])
            } catch {
                #expect(error.code == .localStorage)
            }
            memory.heal()
            let bodies = [[1]: Self.old, [2]: new] as [[UInt8]: [UInt8]]
            try Self.expectPinned(memory, bodies, "sync \(skipping)")
            store.closeIdle()
            #expect(store.chargedBytes >= memory.allocatedBytes)
            // The next process sweeps what no record speaks of.
            store.close()
            let next = try CrashDisk(memory).open()
            try next.loadIndex()
            try Self.expectPinned(memory, bodies, "sync \(skipping), then swept")
            #expect(try next.verify(repair: false).damaged == 0)
        }
    }

    @Test("A pin that could not be kept at first is kept when it is asked for again")
    func pinnedAgain() throws {
        let memory = InMemoryFileSystem(time: ManualTimeSource(), remembersUnsynced: true)
        let store = try CrashDisk(memory).open()
        try store.store(Self.old, for: key("a"), metadata: [1])
        // The new record is written, and then its name is not synced.
        memory.fail(.sync, with: .ioError, skipping: 1)
        #expect(throws: CacheError.self) { try store.setPinned(true, of: key("a")) }
        #expect(try store.setPinned(true, of: key("a")))
        try Self.expectPinned(memory, [[1]: Self.old], "pinned again")
        // From then on it costs nothing.
        let calls = memory.calls.count { $0.call == .sync }
        #expect(try store.setPinned(true, of: key("a")))
        #expect(memory.calls.count { $0.call == .sync } == calls)
    }
}

/// A cache directory on a disk that has lost its power, and what must be true of it.
struct CrashDisk {
    let memory: InMemoryFileSystem

    init(_ memory: InMemoryFileSystem) { self.memory = memory }

    func open(hasClaim: Bool = false) throws(CacheError) -> DiskStore {
        var options = DiskStore.Options(root: "/cache", limit: 8 << 20)
        options.minimumFree = 0
        if hasClaim { options.minimumSnapshotEntries = 1 }
        options.hugeBody = 120_000
        options.headLength = 65_536
        options.generationSeed = 42
        // A machine takes longer to start again than files are young.
        let time = ManualTimeSource()
        time.advance(by: .seconds(60))
        return try DiskStore(options, fileSystem: memory, timeSource: time)
    }

    func check(_ crash: CrashCase, call context: String) throws {
        let store = try open()
        // Before the index is there, if what is claimed allows it.
        if crash.hasClaim { try store.store([8], for: key("early"), metadata: [0]) }
        for name in crash.bodies.keys { try checkBytes(name, crash, store, context) }
        for name in crash.promised {
            let entry = try #require(try store.entry(for: key(name)), "\(name), \(context)")
            #expect(entry.isPinned && entry.isComplete, "\(name), \(context)")
            #expect(entry.verifyAll(), "\(name), \(context)")
        }
        store.closeIdle()
        #expect(try store.usage().bytes == memory.allocatedBytes, "\(context)")
        _ = try store.verify(repair: true)
        #expect(try store.verify(repair: false).damaged == 0, "\(context)")
        #expect(try store.usage().bytes == memory.allocatedBytes, "\(context)")
        try store.store([9, 9], for: key("new"), metadata: [0])
        #expect(try store.entry(for: key("new"))?.read(2) == [9, 9], "\(context)")
        try store.removeAll()
        store.closeIdle()
        #expect(memory.files.keys.sorted() == ["/cache/FORMAT", "/cache/LOCK"], "\(context)")
        #expect(try store.usage().bytes == memory.allocatedBytes, "\(context)")
    }

    /// Every byte that is given is one of the body that the entry's metadata names.
    private func checkBytes(
        _ name: String,
        _ crash: CrashCase,
        _ store: DiskStore,
        _ context: String
    ) throws {
        guard let entry = try store.entry(for: key(name)) else { return }
        let tag = try #require(entry.metadata.first, "\(name), \(context)")
        let body = try #require(crash.bodies[name]?[tag], "\(name), \(context)")
        if let length = entry.completeLength {
            #expect(length == Int64(body.count), "\(name), \(context)")
        }
        for range in entry.storedRanges.ranges {
            var offset = range.lowerBound
            while offset < range.upperBound {
                let read = entry.read(at: offset, Int(range.upperBound - offset))
                #expect(body.holds(read, at: Int(offset)), "\(name) from \(offset), \(context)")
                // A gap: the rest of its block is not stored any more.
                offset = read.isEmpty ? (offset / 65_536 + 1) * 65_536 : offset + Int64(read.count)
            }
        }
    }
}
