import Testing
import TieredCache

@testable import TieredCacheAgent

@Suite("What downloads require of the machine", .timeLimit(.minutes(5)))
struct ConditionTests {
    private var table = DownloadTable(options: DownloadOptions(["max-concurrent-downloads": "2"]))
    private var now = MonotonicTime(nanoseconds: 0)

    private func gid(_ number: UInt64) -> GID { GID(number: number) }

    @discardableResult
    private mutating func add(_ number: UInt64, _ require: String?) -> [DownloadTable.Action] {
        table.add(
            gid(number),
            uris: ["http://a/\(number)"],
            options: DownloadOptions(require.map { ["require": $0] } ?? [:]),
            position: nil,
            now: now
        )
    }

    private func state(_ change: (inout MachineState) -> Void) -> MachineState {
        var state = MachineState()
        change(&state)
        return state
    }

    private var running: [UInt64] { table.activeOnes.map(\.record.gid.number) }

    private func waits(_ number: UInt64) -> [Condition]? {
        table.live[gid(number)].map { table.awaited(by: $0) }
    }

    @Test("One that requires something waits until the machine is known, and others go before it")
    mutating func learning() {
        add(1, "unmetered,charging")
        add(2, nil)
        #expect(running == [2])
        #expect(waits(1) == [.unmetered, .charging])
        _ = table.didLearn(state { $0.isMetered = false }, now: now)
        #expect(running == [1, 2])
    }

    @Test("One that runs waits as soon as its condition fails, and goes on when it holds again")
    mutating func changes() throws {
        _ = table.didLearn(state { $0.isMetered = false }, now: now)
        add(1, "unmetered")
        add(2, nil)
        add(3, nil)
        #expect(running == [1, 2])
        let failed = table.didLearn(state { $0.isMetered = true }, now: now)
        #expect(failed.first == .stop(gid(1), run: 1))
        #expect(running == [2, 3])
        #expect(waits(1) == [.unmetered])
        #expect(table.isBusy)
        _ = try table.remove(gid(3), now: now, date: 0)
        _ = table.didLearn(state { $0.isMetered = false }, now: now)
        #expect(running == [1, 2])
    }

    @Test("What nothing says holds, and is told")
    mutating func unknown() throws {
        _ = table.didLearn(MachineState(), now: now)
        add(1, "idle,storage")
        #expect(running == [1])
        let download = try #require(table.live[gid(1)])
        #expect(table.unknown(to: download) == [.idle, .storage])
    }

    @Test("What is known is not believed when it was last asked long ago")
    mutating func forgotten() {
        _ = table.didLearn(state { $0.isOnBattery = false }, now: now)
        _ = table.didLearn(nil, now: now)
        add(1, "charging")
        #expect(running.isEmpty)
    }

    @Test("No place is given up for one whose condition fails")
    mutating func slices() {
        _ = table.didLearn(state { $0.isIdle = false }, now: now)
        add(1, nil)
        add(2, nil)
        add(3, "idle")
        now = now.advanced(by: DownloadTable.slice)
        #expect(table.shareSlots(now: now).isEmpty)
        _ = table.didLearn(state { $0.isIdle = true }, now: now)
        _ = table.shareSlots(now: now)
        #expect(running.contains(3))
    }

    @Test("What one requires can be changed while it runs, and without a new beginning")
    mutating func require() throws {
        _ = table.didLearn(state { $0.isOnBattery = true }, now: now)
        add(1, nil)
        let run = table.live[gid(1)]?.run
        _ = try table.require(gid(1), [.network], now: now)
        #expect(table.live[gid(1)]?.run == run)
        _ = try table.require(gid(1), [.charging], now: now)
        #expect(running.isEmpty)
        _ = try table.require(gid(1), [], now: now)
        #expect(running == [1])
        #expect(throws: RPCError("Cannot change option for GID#0000000000000009")) {
            try table.require(gid(9), [], now: now)
        }
    }

    @Test("One that runs goes on until the machine is known")
    mutating func unlearned() throws {
        add(1, nil)
        let run = table.live[gid(1)]?.run
        _ = try table.require(gid(1), [.unmetered], now: now)
        _ = table.didLearn(nil, now: now)
        #expect(table.live[gid(1)]?.run == run)
        _ = table.didLearn(state { $0.isMetered = true }, now: now)
        #expect(running.isEmpty)
    }

    @Test("What the agent requires holds for those that say nothing themselves")
    mutating func global() throws {
        _ = table.didLearn(state { $0.isMetered = true }, now: now)
        _ = try table.change(options: ["require": "unmetered"], now: now)
        add(1, nil)
        add(2, "")
        #expect(running == [2])
        #expect(table.hasConditions)
    }

    @Test("A list is told in one order; a name that is none is refused")
    func list() {
        #expect(Condition.list("storage, network,network") == [.network, .storage])
        #expect(Condition.list("") == [])
        #expect(Condition.list("network,wifi") == nil)
        #expect(OptionNames.canonical("idle,charging", of: "require") == "charging,idle")
        #expect(OptionNames.canonical("wifi", of: "require") == nil)
    }

    @Test(
        "A volume has no room with less than 500 MiB and a twentieth of its size",
        arguments: [
            (free: Int64(499) << 20, size: Int64(1) << 40, isLow: true),
            (500 << 20, 1 << 40, false), (1 << 20, 10 << 20, false), (1, 100 << 20, true),
        ]
    )
    func room(free: Int64, size: Int64, isLow: Bool) {
        #expect(MachineState.isLow(free: free, size: size) == isLow)
    }
}
