import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Two things at once, in the one order that went wrong.
@Suite("Disk: two at once", .timeLimit(.minutes(10)))
struct DiskRaceTests {
    private typealias Intruder = DiskRace.Intruder
    private typealias NotingWaiter = DiskRace.NotingWaiter
    private typealias Worker = DiskRace.Worker

    @Test("what takes a name is charged while what had it goes", arguments: DiskKind.allCases)
    func succession(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let intruder = Intruder()
        let store = try DiskRace.open(disk, intruder)
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
            let charged = store.state.withLock { $0.space.bytes }
            seen.withLock { $0 = [charged, disk.allocatedBytes] }
        }
        try entry.beginWriting(at: 0).write(bytes(200_000, seed: 2))
        let sizes = seen.withLock { $0 }
        try #require(sizes.count == 2)
        #expect(sizes[0] >= sizes[1])
    }

    @Test(
        "a writer that writes what is being given back keeps no hole",
        arguments: DiskKind.allCases
    )
    func punchAndFill(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let intruder = Intruder()
        let (waiter, worker) = (NotingWaiter(), Worker())
        let store = try DiskRace.open(disk, intruder, waiter: waiter)
        let entry = try store.store(DiskRace.film, for: key("film"))
        // Played at its beginning: what lies far ahead is cold.
        #expect(DiskRace.film.holds(entry.read(at: 0, 65_536), at: 0))
        let writer = try entry.beginWriting(at: 0)
        intruder.arm(at: .resize) {
            worker.run(watching: waiter) { try writer.write(DiskRace.film) }
        }
        _ = store.giveUpColdBlocks(512 << 10)
        worker.join()
        writer.end()
        #expect(entry.isComplete)
        for range in entry.storedRanges.ranges {
            let read = entry.read(at: range.lowerBound, Int(range.upperBound - range.lowerBound))
            #expect(DiskRace.film.holds(read, at: Int(range.lowerBound)), "\(range)")
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
        let store = try DiskRace.open(disk, intruder, waiter: waiter)
        try store.store(DiskRace.film, for: key("film"))
        store.closeIdle()
        let name = store.name(of: key("film"))
        try store.state.withLock { state in
            state.entries.takeVictim(try #require(state.entries.index[name]))
        }
        let entry = try #require(try store.entry(for: key("film")))
        let writer = try entry.beginWriting(at: 0)
        intruder.arm(at: .resize) {
            // The record is cut first; the punch is the next such call.
            intruder.arm(at: .resize) {
                worker.run(watching: waiter) { try writer.write(DiskRace.film) }
            }
        }
        #expect(try #require(try store.shorten(name)).bytes > 0)
        worker.join()
        writer.end()
        for range in entry.storedRanges.ranges {
            let read = entry.read(at: range.lowerBound, Int(range.upperBound - range.lowerBound))
            #expect(DiskRace.film.holds(read, at: Int(range.lowerBound)), "\(range)")
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
        let store = try DiskRace.open(disk, intruder)
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
        "a repair takes the bad block alone of a body that is freshened while it is hashed",
        arguments: [false, true],
        [false, true]
    )
    func repairAndFreshen(isOpen: Bool, isHashing: Bool) throws {
        let disk = TestDisk(.memory)
        let intruder = Intruder()
        let store = try DiskRace.open(disk, intruder)
        try store.store(DiskRace.film, for: key("film"), metadata: [1, 2, 3], class: .pinned)
        if !isOpen { store.closeIdle() }
        let path = try #require(disk.paths(".body").first)
        let bad: Range<Int64> = 5 << 16..<6 << 16
        #expect(disk.memory.tamper("\(disk.root)/\(path)") { $0[Int(bad.lowerBound) + 7] ^= 1 })
        // So long that all that follows it in the record, the table, has another place.
        let metadata = bytes(20_000, seed: 12)
        let hasFreshened = Guarded(false)
        let freshen: @Sendable () -> Void = { [store] in
            do throws(CacheError) {
                try store.entry(for: key("film"))?.updateMetadata(metadata)
                hasFreshened.withLock { $0 = true }
            } catch {
                Issue.record(error)
            }
        }
        intruder.arm(at: .open, of: ".body") {
            if isHashing { intruder.arm(at: .read, freshen) } else { freshen() }
        }
        let findings = Guarded<[DiskFinding]>([])
        let found = try store.verify(repair: true) { finding in
            findings.withLock { $0.append(finding) }
        }
        #expect(hasFreshened.withLock { $0 })
        #expect(found.damaged == 1 && found.repaired == 1)
        #expect(findings.withLock { $0.map(\.blocks) } == [[5]])
        store.close()
        let next = try disk.open()
        let entry = try #require(try next.entry(for: key("film")))
        #expect(entry.metadata == metadata && entry.isPinned)
        let film = DiskRace.film
        #expect(
            entry.storedRanges.ranges == [0..<bad.lowerBound, bad.upperBound..<Int64(film.count)]
        )
        for range in entry.storedRanges.ranges {
            let read = entry.read(at: range.lowerBound, range.count)
            #expect(read.count == range.count && film.holds(read, at: Int(range.lowerBound)))
        }
        #expect(try next.verify(repair: false).damaged == 0)
    }

    @Test(
        "a writer that comes to a block that another one writes has it when it goes on",
        arguments: [false, true]
    )
    func twoFills(isFirstFailing: Bool) throws {
        let disk = TestDisk(.memory)
        let (intruder, waiter, worker) = (Intruder(), NotingWaiter(), Worker())
        let store = try DiskRace.open(disk, intruder, waiter: waiter)
        let entry = try store.makeEntry(for: key("film"), metadata: [], completeLength: 200_000)
        let (first, second) = (try entry.beginWriting(at: 0), try entry.beginWriting(at: 0))
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
    func closingAndEvict(dormantCost: Int) throws {
        let disk = TestDisk(.memory)
        let store = try DiskRace.open(disk, Intruder())
        try store.store(bytes(300_000), for: key("film"))
        // Twice, since the first look takes the mark of its use.
        var leaving = (0..<2).map { _ in
            store.state.withLock { store.shrink(&$0, to: 0, maximumDormantCost: dormantCost) }
        }
        try store.trim(to: 0)
        #expect(disk.memory.files.keys.allSatisfy { !$0.contains("entries/") })
        #expect(disk.memory.allocatedBytes > 300_000)
        #expect(store.chargedBytes >= disk.memory.allocatedBytes)
        for some in leaving { store.retire(some) }
        leaving = []
        #expect(disk.memory.allocatedBytes < 300_000)
        #expect(store.chargedBytes == disk.memory.allocatedBytes)
    }

    @Test(
        "a record that is read while it is being written is no damage",
        arguments: [true, false],
        [true, false]
    )
    func verified(repair: Bool, isGone: Bool) throws {
        let disk = TestDisk(.memory)
        try disk.open().store(bytes(1000), for: key("a"))
        let path = try #require(disk.paths(".record").first)
        let content = try disk.content(path)
        let looks = Guarded(0)
        // The first look meets half of it, and what had been written is gone or whole later.
        let fileSystem = WatchedFileSystem(disk.memory) { call, name in
            guard call == .open, name.hasSuffix(".record") else { return }
            let look = looks.withLock { looks in
                looks += 1
                return looks
            }
            if look == 2, isGone {
                _ = disk.memory.delete("\(disk.root)/\(path)")
                return
            }
            _ = disk.memory.tamper("\(disk.root)/\(path)") { record in
                record = look == 1 ? Array(content.prefix(20)) : content
            }
        }
        let store = try DiskStore(disk.options(), fileSystem: fileSystem, timeSource: disk.time)
        #expect(try store.verify(repair: repair).damaged == 0)
        #expect(looks.withLock { $0 } >= 2)
        #expect(try (store.entry(for: key("a")) == nil) == isGone)
    }
}
