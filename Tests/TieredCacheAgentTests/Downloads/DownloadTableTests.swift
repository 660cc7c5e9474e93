import Testing
import TieredCache

@testable import TieredCacheAgent

@Suite("Which downloads run", .timeLimit(.minutes(5)))
struct DownloadTableTests {
    private var table: DownloadTable
    private var now = MonotonicTime(nanoseconds: 0)

    init() throws {
        table = DownloadTable(options: DownloadOptions(["max-concurrent-downloads": "2"]))
    }

    private func gid(_ number: UInt64) -> GID { GID(number: number) }

    @discardableResult
    private mutating func add(
        _ number: UInt64,
        _ options: [String: String] = [:],
        uris: [String] = ["http://a/x"],
        at position: Int? = nil
    ) -> [DownloadTable.Action] {
        table.add(
            gid(number),
            uris: uris,
            options: DownloadOptions(options),
            position: position,
            now: now
        )
    }

    private mutating func end(
        _ number: UInt64,
        _ outcome: DownloadTable.Outcome
    )
        -> [DownloadTable.Action]
    {
        let run = table.live[gid(number)]?.run ?? 0
        return table.didEnd(gid(number), run: run, outcome, now: now, date: 0)
    }

    private func started(_ actions: [DownloadTable.Action]) -> [UInt64] {
        actions.compactMap { if case .start(let gid, _) = $0 { gid.number } else { nil } }
    }

    private func events(_ actions: [DownloadTable.Action]) -> [DownloadEvent] {
        actions.compactMap { if case .notify(let told) = $0 { told.event } else { nil } }
    }

    private func failure(_ code: CacheError.Code, status: Int? = nil) -> DownloadTable.Outcome {
        .failed(DownloadFailure(DownloadProblem(CacheError(code, "no", status: status))))
    }

    @Test("As many run as are allowed, in their order")
    mutating func slots() {
        #expect(started(add(1)) == [1])
        #expect(started(add(2)) == [2])
        #expect(started(add(3)).isEmpty)
        #expect(started(add(4)).isEmpty)
        let actions = end(1, .complete(path: "/x", total: 5))
        #expect(started(actions) == [3])
        #expect(events(actions) == [.complete, .start])
        #expect(table.activeOnes.map(\.record.gid.number) == [2, 3])
        #expect(table.waitingOnes == [gid(4)])
        #expect(Array(table.stopped) == [gid(1)])
    }

    @Test("Pause, unpause and remove are what aria2 makes of them")
    mutating func commands() throws {
        add(1)
        add(2)
        add(3)
        let paused = try table.pause(gid(1), now: now)
        #expect(events(paused) == [.pause, .start])
        #expect(started(paused) == [3])
        #expect(throws: RPCError("GID#0000000000000001 cannot be paused now")) {
            try table.pause(gid(1), now: now)
        }
        // One that waits is paused without a word.
        add(4)
        #expect(events(try table.pause(gid(4), now: now)).isEmpty)
        #expect(started(try table.unpause(gid(1), now: now)).isEmpty)
        #expect(throws: RPCError("GID#0000000000000002 cannot be unpaused now")) {
            try table.unpause(gid(2), now: now)
        }
        // What does not run is forgotten, what runs leaves a result.
        #expect(try table.remove(gid(4), now: now, date: 0).contains(.forget(gid(4))))
        #expect(!table.contains(gid(4)))
        let removed = try table.remove(gid(2), now: now, date: 0)
        #expect(events(removed) == [.stop, .start])
        #expect(table.stopped.contains(gid(2)))
        #expect(throws: RPCError("Active Download not found for GID#0000000000000002")) {
            try table.remove(gid(2), now: now, date: 0)
        }
        _ = try table.removeResult(gid(2), seenBy: nil)
        #expect(throws: RPCError.self) { try table.removeResult(gid(2), seenBy: nil) }
    }

    @Test("One that is paused while it runs is the first of those that wait")
    mutating func pausedOrder() throws {
        for number: UInt64 in 1...4 { add(number) }
        _ = try table.pause(gid(2), now: now)
        _ = try table.pause(gid(3), now: now)
        #expect(table.waitingOnes == [gid(3), gid(2)])
        _ = table.pauseAll(of: nil, now: now)
        #expect(table.waitingOnes == [1, 4, 3, 2].map { gid($0) })
    }

    @Test("All are paused without one being started on the way, and go on")
    mutating func all() {
        for number: UInt64 in 1...5 { add(number) }
        let paused = table.pauseAll(of: nil, now: now)
        #expect(started(paused).isEmpty)
        #expect(events(paused) == [.pause, .pause])
        #expect(table.activeCount == 0 && !table.isBusy)
        #expect(started(table.unpauseAll(of: nil, now: now)) == [1, 2])
    }

    @Test("The order is changed as with aria2, and outlives the process")
    mutating func order() throws {
        for number: UInt64 in 1...6 { add(number, ["pause": "true"]) }
        #expect(try table.move(gid(6), to: 0, from: .start).position == 0)
        #expect(try table.move(gid(1), to: 2, from: .current).position == 3)
        #expect(try table.move(gid(2), to: -1, from: .end).position == 4)
        #expect(try table.move(gid(3), to: .min, from: .current).position == 0)
        #expect(try table.move(gid(3), to: .max, from: .current).position == 5)
        let numbers = table.waitingOnes.map(\.number)
        #expect(numbers == [6, 1, 4, 2, 5, 3])
        let records = table.live.values.map(\.record)
        #expect(DownloadTable(records: records).waitingOnes.map(\.number) == numbers)
        #expect(throws: RPCError.self) { try table.move(gid(9), to: 0, from: .start) }
    }

    @Test("Ranks never run out between two neighbours")
    mutating func ranks() throws {
        for number: UInt64 in 1...3 { add(number, ["pause": "true"]) }
        for number: UInt64 in 10..<60 { add(number, ["pause": "true"], at: 1) }
        let wanted = [1] + (10..<60).reversed() + [2, 3]
        #expect(table.waitingOnes.map(\.number) == wanted.map(UInt64.init))
        let records = table.live.values.map(\.record)
        #expect(DownloadTable(records: records).waitingOnes == table.waitingOnes)
    }

    @Test("A mirror is used where a URL fails for good, and the file fails with the last one")
    mutating func mirrors() throws {
        add(1, uris: ["http://a/x", "http://b/x"])
        let next = end(1, failure(.httpStatus, status: 404))
        #expect(started(next) == [1])
        #expect(table.live[gid(1)]?.record.uri == "http://b/x")
        let last = end(1, failure(.httpStatus, status: 404))
        #expect(events(last) == [.error])
        guard case .save(let record) = last.first else {
            Issue.record("\(last)")
            return
        }
        #expect(record.state == .error && record.errorCode == 3)
    }

    @Test("What fails for a while is tried again after a pause, as often as max-tries says")
    mutating func tries() {
        add(1, ["max-tries": "2", "retry-wait": "3"])
        #expect(started(end(1, failure(.timedOut))).isEmpty)
        #expect(table.isBusy)
        now = MonotonicTime(nanoseconds: 2_900_000_000)
        #expect(started(table.fillSlots(now: now)).isEmpty)
        now = MonotonicTime(nanoseconds: 3_000_000_000)
        #expect(started(table.fillSlots(now: now)) == [1])
        #expect(events(end(1, failure(.timedOut))) == [.error])
    }

    @Test("A long one gives way to a short one, and goes on behind it")
    mutating func slices() {
        for number: UInt64 in 1...3 { add(number) }
        now = MonotonicTime(nanoseconds: 59_000_000_000)
        #expect(table.shareSlots(now: now).isEmpty)
        now = MonotonicTime(nanoseconds: 60_000_000_000)
        #expect(started(table.shareSlots(now: now)) == [3])
        #expect(table.waitingOnes.map(\.number) == [1])
        #expect(started(end(3, .complete(path: "/x", total: 1))) == [1])
        // Where nothing waits none gives way.
        now = MonotonicTime(nanoseconds: 600_000_000_000)
        #expect(table.shareSlots(now: now).isEmpty)
    }

    @Test("What a run reports after its end changes nothing")
    mutating func lateReports() throws {
        add(1)
        let run = try #require(table.live[gid(1)]?.run)
        _ = try table.pause(gid(1), now: now)
        let late = table.didEnd(
            gid(1),
            run: run,
            .complete(path: "/x", total: 1),
            now: now,
            date: 0
        )
        #expect(late.isEmpty)
        table.didProgress(gid(1), run: run, completed: 7, total: 9, speed: 1)
        #expect(table.live[gid(1)]?.record.completed == 0)
        #expect(table.live[gid(1)]?.record.state == .paused)
    }

    @Test("A restart goes on with what waited, and leaves alone what lacks its secrets")
    func restart() {
        var first = DownloadRecord(gid: gid(1), uris: ["http://a/x"], options: .init(), rank: 1)
        var second = DownloadRecord(gid: gid(2), uris: ["http://a/y"], options: .init(), rank: 2)
        first.lacksSecrets = true
        second.completed = 5
        var table = DownloadTable(records: [second, first])
        #expect(started(table.fillSlots(now: now)) == [2])
        #expect(table.live[gid(1)]?.record.state == .paused)
        #expect(started(table.close()).isEmpty)
        #expect(table.live[gid(2)]?.record.state == .waiting)
        #expect(table.fillSlots(now: now).isEmpty)
    }

    @Test("The beginning of an identifier is enough where it is one's alone")
    mutating func identifiers() throws {
        add(0xab00_0000_0000_0001, ["pause": "true"])
        add(0xab00_0000_0000_0002, ["pause": "true"])
        add(0xcd00_0000_0000_0003, ["pause": "true"])
        #expect(try table.gid("CD").number == 0xcd00_0000_0000_0003)
        #expect(throws: RPCError("GID ab is not unique")) { try table.gid("ab") }
        #expect(throws: RPCError("GID ef is not found")) { try table.gid("ef") }
        for text in ["", "xy", "00000000000000001", "é"] {
            #expect(throws: RPCError("Invalid GID \(text)")) { try table.gid(text) }
        }
    }
}
