import Foundation
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

    private func open(
        _ disk: TestDisk,
        _ intruder: Intruder,
        limit: Int64 = 64 << 20
    ) throws -> DiskStore {
        var options = disk.options(limit: limit)
        options.hugeBody = 1 << 20
        options.headLength = 131_072
        let fileSystem = WatchedFileSystem(disk.fileSystem) { intruder.didCall($0, $1) }
        return try DiskStore(options, fileSystem: fileSystem, timeSource: disk.time)
    }

    /// Runs `work` on a thread of its own, until it has ended or `isStuck` says that it waits.
    private static func run(
        until isStuck: @escaping @Sendable () -> Bool,
        _ work: @escaping @Sendable () -> Void
    ) {
        let isDone = Guarded(false)
        Thread {
            work()
            isDone.withLock { $0 = true }
        }.start()
        while !isDone.withLock({ $0 }), !isStuck() { sched_yield() }
    }

    @Test(
        "a fill that writes what is being given back keeps no hole",
        arguments: DiskKind.allCases
    )
    func punchAndFill(kind: DiskKind) throws {
        let disk = TestDisk(kind)
        let intruder = Intruder()
        let store = try open(disk, intruder)
        let entry = try store.store(Self.film, for: key("film"))
        // Played at its beginning: what lies far ahead is cold.
        #expect(Self.film.holds(entry.read(at: 0, 65_536), at: 0))
        let fill = try entry.beginFill(at: 0)
        intruder.arm(at: .resize) {
            Self.run(until: { entry.isComplete }) {
                do throws(CacheError) {
                    try fill.write(Self.film)
                } catch {
                    Issue.record(error)
                }
            }
        }
        _ = store.core.giveUpColdBlocks(512 << 10)
        // Waits for whatever the fill still does.
        fill.end()
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
        let store = try open(disk, intruder)
        try store.store(Self.film, for: key("film"))
        store.closeIdle()
        let slot = try #require(
            store.core.state.withLock { state in
                let name = store.core.name(of: key("film"))
                return state.index.remove(name)
            }
        )
        let entry = try #require(try store.entry(for: key("film")))
        let fill = try entry.beginFill(at: 0)
        intruder.arm(at: .resize) {
            // The record is cut first; the punch is the next such call.
            intruder.arm(at: .resize) {
                Self.run(until: { entry.isComplete }) {
                    do throws(CacheError) {
                        try fill.write(Self.film)
                    } catch {
                        Issue.record(error)
                    }
                }
            }
        }
        #expect(store.core.shorten(slot) != nil)
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
        #expect(try store.entry(for: key("film"))?.read(size) == new)
        store.close()
        let next = try disk.open()
        let entry = try #require(try next.entry(for: key("film")))
        #expect(entry.isPinned && entry.read(size) == new)
    }
}
