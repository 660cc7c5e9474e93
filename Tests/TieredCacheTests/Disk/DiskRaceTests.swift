import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Two things at once, in the one order that went wrong: made by a file system that lets the second in
/// between two calls of the first.
@Suite("Disk: two at once", .timeLimit(.minutes(10)))
struct DiskRaceTests {
    private static let film = bytes(2 << 20, seed: 3)

    /// What is done at a call, once.
    private final class Intruder: Sendable {
        private struct Plan {
            let call: FileSystemError.Call
            let suffix: String
            let work: @Sendable () -> Void
        }

        private let plan = Guarded<Plan?>(nil)

        /// - Parameters:
        ///   - call: before which call.
        ///   - suffix: how the name ends that the call is given.
        ///   - work: what is done.
        func arm(
            at call: FileSystemError.Call,
            of suffix: String = "",
            _ work: @escaping @Sendable () -> Void
        ) {
            plan.withLock { $0 = Plan(call: call, suffix: suffix, work: work) }
        }

        func didCall(_ call: FileSystemError.Call, _ name: String) {
            let due = plan.withLock { plan -> (@Sendable () -> Void)? in
                guard let known = plan, known.call == call, name.hasSuffix(known.suffix) else {
                    return nil
                }
                plan = nil
                return known.work
            }
            due?()
        }
    }

    /// Says whether a thread waits for a lock.
    private final class NotingWaiter: LockWaiter {
        private let waiting = Guarded(0)

        var isAwaited: Bool { waiting.withLock { $0 > 0 } }

        func wait(until attempt: () -> Bool) {
            if attempt() { return }
            waiting.withLock { $0 += 1 }
            defer { waiting.withLock { $0 -= 1 } }
            while !attempt() { sched_yield() }
        }
    }

    private func open(
        _ disk: TestDisk,
        _ intruder: Intruder,
        limit: Int64 = 64 << 20,
        waiter: NotingWaiter? = nil,
        didLeave: (@Sendable (DiskDeparture) -> Void)? = nil
    ) throws -> DiskStore {
        var options = disk.options(limit: limit)
        options.hugeBody = 1 << 20
        options.headLength = 131_072
        options.lockWaiter = waiter
        options.didLeave = didLeave
        let fileSystem = WatchedFileSystem(disk.fileSystem) { intruder.didCall($0, $1) }
        return try DiskStore(options, fileSystem: fileSystem, timeSource: disk.time)
    }

    /// A thread that works beside the test's.
    private final class Worker: Sendable {
        private let isDone = Guarded(true)

        /// Runs `work` until it has ended or waits for a lock; it may go on then.
        func run(
            watching waiter: NotingWaiter,
            _ work: @escaping @Sendable () throws -> Void
        ) {
            start(work)
            while !isDone.withLock({ $0 }), !waiter.isAwaited { sched_yield() }
        }

        func start(_ work: @escaping @Sendable () throws -> Void) {
            isDone.withLock { $0 = false }
            Thread { [self] in
                do {
                    try work()
                } catch {
                    Issue.record(error)
                }
                isDone.withLock { $0 = true }
            }.start()
        }

        func join() {
            while !isDone.withLock({ $0 }) { sched_yield() }
        }
    }

    @Test("what takes a name is booked while what had it goes", arguments: DiskKind.allCases)
    func succession(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let intruder = Intruder()
        let store = try open(disk, intruder)
        try store.store(bytes(200_000, seed: 1), for: key("a"), metadata: [1], class: .pinned)
        let old = try #require(try store.entry(for: key("a")).map { $0.name.body($0.generation) })
        let entry = try store.makeEntry(
            for: key("a"),
            metadata: [2],
            completeLength: 200_000,
            class: []
        )
        let seen = Guarded<[Int64]>([])
        intruder.arm(at: .remove, of: old) {
            let booked = store.state.withLock { $0.space.bytes }
            seen.withLock { $0 = [booked, disk.allocatedBytes] }
        }
        try entry.beginFill(at: 0).write(bytes(200_000, seed: 2))
        let sizes = seen.withLock { $0 }
        try #require(sizes.count == 2)
        #expect(sizes[0] >= sizes[1])
    }

    @Test(
        "a fill that writes what is being given back keeps no hole",
        arguments: DiskKind.allCases
    )
    func punchAndFill(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let intruder = Intruder()
        let (waiter, worker) = (NotingWaiter(), Worker())
        let store = try open(disk, intruder, waiter: waiter)
        let entry = try store.store(Self.film, for: key("film"))
        // Played at its beginning: what lies far ahead is cold.
        #expect(Self.film.holds(entry.read(at: 0, 65_536), at: 0))
        let fill = try entry.beginFill(at: 0)
        intruder.arm(at: .resize) {
            worker.run(watching: waiter) { try fill.write(Self.film) }
        }
        _ = store.giveUpColdBlocks(512 << 10)
        worker.join()
        fill.end()
        #expect(entry.isComplete)
        for range in entry.heldRanges.ranges {
            let read = entry.read(at: range.lowerBound, Int(range.upperBound - range.lowerBound))
            #expect(Self.film.holds(read, at: Int(range.lowerBound)), "\(range)")
        }
        #expect(try store.verify(repair: false).damaged == 0)
        #expect(entry.state.withLock { $0.claims.isEmpty })
    }

    @Test(
        "the tail of an entry that was opened and filled meanwhile keeps no hole",
        arguments: DiskKind.allCases
    )
    func shortenAndFill(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let intruder = Intruder()
        let (waiter, worker) = (NotingWaiter(), Worker())
        let store = try open(disk, intruder, waiter: waiter)
        try store.store(Self.film, for: key("film"))
        store.closeIdle()
        let name = store.name(of: key("film"))
        try store.state.withLock { state in
            state.entries.takeVictim(try #require(state.entries.index[name]))
        }
        let entry = try #require(try store.entry(for: key("film")))
        let fill = try entry.beginFill(at: 0)
        intruder.arm(at: .resize) {
            // The record is cut first; the punch is the next such call.
            intruder.arm(at: .resize) {
                worker.run(watching: waiter) { try fill.write(Self.film) }
            }
        }
        #expect(try #require(try store.shorten(name)).bytes > 0)
        worker.join()
        fill.end()
        for range in entry.heldRanges.ranges {
            let read = entry.read(at: range.lowerBound, Int(range.upperBound - range.lowerBound))
            #expect(Self.film.holds(read, at: Int(range.lowerBound)), "\(range)")
        }
    }

    @Test(
        "a repair leaves alone what was stored while it looked",
        arguments: [60_000, 300_000],
        [(FileSystemError.Call.open, ".body"), (.open, ".record"), (.list, "")]
    )
    func repairAndStore(size: Int, at place: (FileSystemError.Call, String)) throws {
        let (call, suffix) = place
        let disk = TestDisk(.memory)
        let intruder = Intruder()
        let store = try open(disk, intruder)
        let new = bytes(size, seed: 11)
        try store.store(bytes(3 << 20, seed: 10), for: key("film"))
        intruder.arm(at: call, of: suffix) { [store] in
            do throws(CacheError) {
                try store.store(new, for: key("film"), class: .pinned)
            } catch {
                Issue.record(error)
            }
        }
        let found = try store.verify(repair: true)
        #expect(found.damaged == 0 && found.repaired == 0)
        // What it looked at before counts no more.
        #expect(found.entries == 1 && found.blocks == (size + 65_535) / 65_536)
        #expect(try store.entry(for: key("film"))?.read(size) == new)
        store.close()
        let next = try disk.open()
        let entry = try #require(try next.entry(for: key("film")))
        #expect(entry.isPinned && entry.read(size) == new)
    }

    @Test(
        "a fill that comes to a block that another one writes has it when it goes on",
        arguments: [false, true]
    )
    func twoFills(isFirstFailing: Bool) throws {
        let disk = TestDisk(.memory)
        let (intruder, waiter, worker) = (Intruder(), NotingWaiter(), Worker())
        let store = try open(disk, intruder, waiter: waiter)
        let entry = try store.makeEntry(for: key("film"), metadata: [], completeLength: 200_000)
        let (first, second) = (try entry.beginFill(at: 0), try entry.beginFill(at: 0))
        let block = bytes(65_536)
        intruder.arm(at: .write) {
            worker.run(watching: waiter) {
                try second.write(block)
                #expect(entry.nextGap(in: 0..<65_536) == nil)
            }
            if isFirstFailing { disk.memory.fail(.write, with: .ioError) }
        }
        do throws(CacheError) {
            try first.write(block)
            #expect(!isFirstFailing)
        } catch {
            #expect(isFirstFailing && error.code == .localStorage)
        }
        worker.join()
        #expect(firstDifference(entry.read(at: 0, 65_536), block) == nil)
        #expect(entry.state.withLock { $0.claims.isEmpty })
    }

    @Test(
        "what is removed before its file is closed is not free yet",
        arguments: [0, 1 << 20]
    )
    func closingAndEvict(restingCost: Int) throws {
        let disk = TestDisk(.memory)
        let store = try open(disk, Intruder())
        try store.store(bytes(300_000), for: key("film"))
        // Twice, since the first look takes the mark of its use.
        var leaving = (0..<2).map { _ in
            store.state.withLock { store.shrink(&$0, to: 0, maximumRestingCost: restingCost) }
        }
        try store.trim(to: 0)
        #expect(disk.memory.files.keys.allSatisfy { !$0.contains("entries/") })
        #expect(disk.memory.allocatedBytes > 300_000)
        #expect(store.bookedBytes >= disk.memory.allocatedBytes)
        for some in leaving { store.retire(some) }
        leaving = []
        #expect(disk.memory.allocatedBytes < 300_000)
        #expect(store.bookedBytes == disk.memory.allocatedBytes)
    }

    @Test(
        "what is written to an entry that is about to leave is booked",
        arguments: [(1, 3), (20, 30)]
    )
    func fillAndEvict(before: Int, after: Int) throws {
        let disk = TestDisk(.memory)
        let intruder = Intruder()
        let store = try open(disk, intruder) { _ in }
        let film = bytes(2 << 20, seed: 3)
        let block = 65_536
        try store.makeEntry(for: key("film"), metadata: [], completeLength: Int64(film.count))
            .beginFill(at: 0).write(film[..<(before * block)])
        store.closeIdle()
        let reading = Guarded<DiskEntry?>(nil)
        // The record is read for its key once the entry was chosen.
        intruder.arm(at: .open, of: ".record") {
            let worker = Worker()
            worker.start {
                let entry = try #require(try store.entry(for: key("film")))
                try entry.beginFill(at: Int64(before * block))
                    .write(film[(before * block)..<(after * block)])
                reading.withLock { $0 = entry }
            }
            worker.join()
        }
        try store.trim(to: 0)
        try #require(reading.withLock { $0 != nil })
        #expect(store.bookedBytes >= disk.memory.allocatedBytes)
        _ = reading.withLock { $0.take() }
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    /// Stores a film, has it chosen to leave, and does something right before it leaves.
    private func evict(
        _ disk: TestDisk,
        size: Int,
        to limit: Int64 = 0,
        while work: @escaping @Sendable (DiskStore) throws -> Void
    ) throws -> DiskStore {
        let intruder = Intruder()
        let store = try open(disk, intruder) { _ in }
        try store.store(Array(Self.film[..<size]), for: key("film"))
        store.closeIdle()
        // The record is read for its key once the entry was chosen.
        intruder.arm(at: .open, of: ".record") {
            let worker = Worker()
            worker.start { try work(store) }
            worker.join()
        }
        try store.trim(to: limit)
        return store
    }

    @Test("what is removed while it is about to leave is booked as long as it is read")
    func removeAndEvict() throws {
        let disk = TestDisk(.memory)
        let reading = Guarded<DiskEntry?>(nil)
        let store = try evict(disk, size: 300_000) { store in
            let entry = try #require(try store.entry(for: key("film")))
            reading.withLock { $0 = entry }
            #expect(try store.remove(key("film")))
        }
        let entry = try #require(reading.withLock { $0 })
        #expect(firstDifference(entry.read(300_000), Array(Self.film[..<300_000])) == nil)
        #expect(store.bookedBytes >= disk.memory.allocatedBytes)
        #expect(disk.memory.allocatedBytes > 300_000)
    }

    @Test("what is replaced while it is about to leave keeps its bytes for those who read it")
    func replaceAndEvict() throws {
        let disk = TestDisk(.memory)
        let reading = Guarded<DiskEntry?>(nil)
        let store = try evict(disk, size: 2 << 20) { store in
            let entry = try #require(try store.entry(for: key("film")))
            #expect(firstDifference(entry.read(2 << 20), Self.film) == nil)
            reading.withLock { $0 = entry }
            _ = try store.makeEntry(for: key("film"), metadata: [], completeLength: 500_000)
        }
        let entry = try #require(reading.withLock { $0 })
        #expect(firstDifference(entry.read(2 << 20), Self.film) == nil)
        #expect(store.bookedBytes >= disk.memory.allocatedBytes)
        #expect(disk.paths(".body").isEmpty)
    }

    @Test("what is about to become a head goes with everything else")
    func removeAllAndEvict() throws {
        let disk = TestDisk(.memory)
        let store = try evict(disk, size: 2 << 20, to: 1 << 20) { try $0.removeAll() }
        #expect(try store.usage().entries == 0)
        #expect(disk.paths(".record").isEmpty && disk.paths(".body").isEmpty)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("what is pinned while it is about to leave hands its pin on")
    func pinReplaceAndEvict() throws {
        let disk = TestDisk(.memory)
        let store = try evict(disk, size: 300_000) { store in
            #expect(try store.setPinned(true, key("film")))
            store.closeIdle()
            _ = try store.makeEntry(for: key("film"), metadata: [], completeLength: 500_000)
        }
        let entry = try #require(try store.entry(for: key("film")))
        #expect(entry.isPinned && entry.read(300_000).count == 300_000)
    }

    @Test("a damaged body that is fetched again while it is about to leave stays")
    func repairAndEvict() throws {
        let disk = TestDisk(.memory)
        let intruder = Intruder()
        do { try disk.open().store(bytes(60_000), for: key("film")) }
        let path = disk.paths(".record")[0]
        var content = try disk.content(path)
        content[content.count - 1] ^= 1
        try disk.write(content, path)
        let store = try open(disk, intruder) { _ in }
        try store.loadIndex()
        let reading = Guarded<DiskEntry?>(nil)
        intruder.arm(at: .open, of: ".record") {
            let worker = Worker()
            worker.start {
                let entry = try #require(try store.entry(for: key("film")))
                #expect(entry.read(60_000).isEmpty)
                try entry.beginFill(at: 0).write(bytes(60_000))
                reading.withLock { $0 = entry }
            }
            worker.join()
        }
        try store.trim(to: 0)
        #expect(store.bookedBytes == disk.memory.allocatedBytes)
        let entry = try #require(try store.entry(for: key("film")))
        #expect(firstDifference(entry.read(60_000), bytes(60_000)) == nil)
        #expect(reading.withLock { $0.take() } === entry)
    }

    @Test("what is pinned while it is about to leave stays", arguments: [1000, 300_000])
    func pinAndEvict(size: Int) throws {
        let disk = TestDisk(.memory)
        let intruder = Intruder()
        let store = try open(disk, intruder) { _ in }
        let body = bytes(size)
        try store.store(body, for: key("film"))
        store.closeIdle()
        let isPinned = Guarded(false)
        // The record is read for its key once it was chosen.
        intruder.arm(at: .open, of: ".record") { [store] in
            let worker = Worker()
            worker.start {
                let wasThere = try store.setPinned(true, key("film"))
                isPinned.withLock { $0 = wasThere }
            }
            worker.join()
        }
        try store.trim(to: 0)
        #expect(isPinned.withLock { $0 })
        for store in [store, try disk.open()] {
            let entry = try #require(try store.entry(for: key("film")))
            #expect(entry.isPinned && entry.isComplete && entry.read(size) == body)
        }
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
        try store.trim(to: 0)
        #expect(try store.entry(for: key("film")) != nil)
    }
}
