import Foundation
import HTTPCaching
import TestParts
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Locks of files: taken in one order, and never one name's within another's.
@Suite("Disk: locks", .tags(.realTime), .timeLimit(.minutes(10)))
struct DiskLockTests {
    /// A store in which all names share one lock and few entries stay in memory.
    private func store(_ disk: TestDisk, maximumOpenEntries: Int) throws -> DiskStore {
        var options = disk.options()
        options.maximumOpenEntries = maximumOpenEntries
        options.maximumHeadMemory = 0
        options.digest = { key in
            MD5Digest(high: key.digest.high, low: 7)
        }
        return try disk.open(options)
    }

    @Test(
        "an entry that leaves memory during a store writes its use down",
        arguments: DiskKind.allCases
    )
    func leavingDuringStore(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let store = try store(disk, maximumOpenEntries: 2)
        for number in 0..<4 { try store.store(bytes(500), for: key("\(number)")) }
        disk.time.advance(by: .seconds(200))
        for number in 0..<4 { _ = try store.entry(for: key("\(number)")) }
        for number in 4..<20 { try store.store(bytes(500), for: key("\(number)")) }
        let used = try #require(try store.list().first { $0.key == key("2") })
        #expect(used.lastUse == disk.time.wallTime().nanoseconds / 1_000_000_000)
    }

    @Test("an entry that leaves memory during a lookup under the lock writes its use down")
    func leavingDuringLookup() throws {
        let disk = TestDisk(.memory)
        let name = Guarded<(store: DiskStore, key: CacheKey)?>(nil)
        // A writer of the same directory gets in between each of the first three tries.
        let fileSystem = WatchedFileSystem(disk.memory) { call, path in
            guard call == .open, path.hasSuffix(".record"), let (store, key) = name.withLock({ $0 })
            else { return }
            let changed = store.name(of: key)
            store.state.withLock { $0.entries.didChange(changed) }
        }
        var options = disk.options()
        options.maximumOpenEntries = 1
        options.maximumHeadMemory = 0
        options.digest = { MD5Digest(high: 1, low: $0.digest.low & ~127) }
        let store = try DiskStore(options, fileSystem: fileSystem, timeSource: disk.time)
        for number in 0..<6 { try store.store(bytes(500), for: key("\(number)")) }
        disk.time.advance(by: .seconds(200))
        name.withLock { $0 = (store, key("0")) }
        for number in 0..<6 { _ = try store.entry(for: key("\(number)")) }
        name.withLock { $0 = nil }
        #expect(try store.entry(for: key("5")) != nil)
    }

    @Test("a second name's lock within the first is a trap")
    func nestedNames() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let locks = KeyedLock(.names)
            locks.withLock(of: 1) { locks.withLock(of: 2) {} }
        }
        #expect(result?.isLockTrap == true)
    }

    @Test("an earlier lock within a later one is a trap")
    func wrongOrder() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let (names, evictions) = (KeyedLock(.names), KeyedLock(.evictions))
            names.withLock { evictions.withLock {} }
        }
        #expect(result?.isLockTrap == true)
    }

    @Test("a lock that may wait for the disk within a value's is a trap")
    func withinValue() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let value = Guarded(0)
            let names = KeyedLock(.names)
            value.withLock { _ in names.withLock {} }
        }
        #expect(result?.isLockTrap == true)
    }

    @Test("two values taken in two orders are a trap, even by one thread")
    func twoOrders() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let first = Guarded(0)
            let second = Guarded(0)
            first.withLock { _ in second.withLock { _ in } }
            second.withLock { _ in first.withLock { _ in } }
        }
        #expect(result?.isLockTrap == true)
    }

    @Test("a lock that may wait for the disk within a call that must not block is a trap")
    func nonBlockingCall() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let names = KeyedLock(.names)
            names.withLock {}
            LockChecker.withoutBlocking("") { LockChecker.withoutBlocking("") {} }
            names.withLock {}
            LockChecker.withoutBlocking("") { names.withLock {} }
        }
        #expect(result?.isLockTrap == true)
    }

    @Test("to want room while the lock of a name is held is a trap, even where there is room")
    func roomUnderName() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let store = try TestDisk(.memory).open()
            try store.store(bytes(500), for: key("a"))
            try store.withLock(of: store.name(of: key("a"))) { _ in
                try store.reserve(4096, for: nil)
            }
        }
        #expect(result?.isLockTrap == true)
    }

    @Test("to let go of an entry while the lock of its store is held is a trap")
    func closingWithinStore() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let store = try TestDisk(.memory).open()
            try store.store(bytes(500), for: key("a"))
            store.state.withLock { state in
                _ = state.open.residents.remove(store.name(of: key("a")))
            }
        }
        #expect(result?.isLockTrap == true)
    }

    @Test("a system call while the lock of a store is held is a trap")
    func callWithinStore() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let store = try TestDisk(.posix).open()
            _ = try store.state.withLock { _ in try store.fileSystem.status(of: store.root) }
        }
        #expect(result?.isLockTrap == true)
    }

    @Test("the lock of a shard in memory within that of another one is a trap")
    func twoShards() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let first = MemoryLock()
            let second = MemoryLock()
            first.lock()
            second.lock()
        }
        #expect(result?.isLockTrap == true)
    }

    @Test("a system call while the lock of a shard in memory is held is a trap")
    func callWithinShard() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let store = try TestDisk(.posix).open()
            let lock = MemoryLock()
            lock.lock()
            _ = try store.fileSystem.status(of: store.root)
        }
        #expect(result?.isLockTrap == true)
    }

    @Test("locks in order are no trap")
    func rightOrder() {
        let locks = LockOrder.allCases.map { KeyedLock($0) }
        let value = Guarded(0)
        func take(_ rest: ArraySlice<KeyedLock>) {
            guard let first = rest.first else { return value.withLock { $0 += 1 } }
            first.withLock { take(rest.dropFirst()) }
        }
        take(locks[...])
        take(locks[...])
        #expect(value.withLock { $0 } == 2)
    }

    @Test("a waiter is asked again until it has the lock")
    func waiter() throws {
        let waiter = CountingWaiter()
        let lock = KeyedLock(.names, waiter: waiter)
        lock.withLock(of: 3) {}
        #expect(waiter.attempts.withLock { $0 } == 1)
    }
}

extension ExitTest.Result {
    /// Whether the checker of locks has ended the process, and nothing else.
    fileprivate var isLockTrap: Bool {
        let message = String(decoding: standardErrorContent, as: UTF8.self)
        return message.contains("is taken while") || message.contains("a system call is made while")
    }
}

private final class CountingWaiter: LockWaiter {
    let attempts = Guarded(0)

    func wait(until attempt: () -> Bool) {
        repeat { attempts.withLock { $0 += 1 } } while !attempt()
    }
}
