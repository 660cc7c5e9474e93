import OrderedCollections
import SystemPackage
import Testing
import TieredCache

@testable import TieredCacheAgent

@Suite("Sessions of applications", .timeLimit(.minutes(5)))
struct SessionTests {
    private static let day: Int64 = 24 * 3600
    private static let command = ["/bin/app", "--resume"]

    private var table = DownloadTable()
    private var now = MonotonicTime(nanoseconds: 0)

    private func gid(_ number: UInt64) -> GID { GID(number: number) }

    @discardableResult
    private mutating func add(
        _ number: UInt64,
        to session: String?,
        _ options: [String: String] = [:]
    ) -> [DownloadTable.Action] {
        var options = DownloadOptions(options)
        options.set("session", to: session)
        return table.add(
            gid(number),
            uris: ["http://a/\(number)"],
            options: options,
            position: nil,
            now: now
        )
    }

    @discardableResult
    private mutating func complete(_ number: UInt64, date: Int64 = 0) -> [DownloadTable.Action] {
        let run = table.live[gid(number)]?.run ?? 0
        let outcome = DownloadTable.Outcome.complete(path: "/x", total: 1)
        return table.didEnd(gid(number), run: run, outcome, now: now, date: date)
    }

    private mutating func tick(after wait: Duration = .zero, date: Int64 = 0) -> [String] {
        now = now.advanced(by: wait)
        return table.lookAfterSessions(now: now, date: date).compactMap {
            if case .run(let command) = $0 { command.session } else { nil }
        }
    }

    private mutating func attach(_ name: String) throws -> DownloadTable.Attachment {
        try table.attach(name, command: Self.command).0
    }

    @Test("The command runs at once, and once, when the last ends and no application is there")
    mutating func absent() throws {
        _ = try attach("a")
        _ = table.detach("a", now: now)
        add(1, to: "a")
        add(2, to: "a")
        complete(1)
        #expect(tick(after: .seconds(100)).isEmpty)
        complete(2)
        #expect(table.isBusy)
        let actions = table.lookAfterSessions(now: now, date: 0)
        let run = Session.Record(name: "a", command: Self.command, hasRun: true)
        // What counts as run is written before.
        #expect(
            actions == [
                .saveSessions([run]), .run(SessionCommand(session: "a", words: Self.command)),
            ]
        )
        #expect(!table.isBusy)
        #expect(tick(after: .seconds(1000)).isEmpty)
        add(3, to: "a")
        complete(3)
        #expect(tick(after: .seconds(1000)).isEmpty)
        // Somebody has attached: what ends after that is news.
        _ = try attach("a")
        _ = table.detach("a", now: now)
        #expect(tick(after: .seconds(59)).isEmpty)
        #expect(tick(after: .seconds(1)) == ["a"])
    }

    @Test("An application that leaves without acknowledging is started after a minute")
    mutating func silent() throws {
        _ = try attach("a")
        add(1, to: "a")
        complete(1)
        #expect(tick(after: .seconds(1000)).isEmpty)
        _ = table.detach("a", now: now)
        #expect(tick(after: .seconds(59)).isEmpty)
        _ = try attach("a")
        #expect(tick(after: .seconds(1000)).isEmpty)
        _ = table.detach("a", now: now)
        #expect(tick(after: .seconds(60)) == ["a"])
    }

    @Test("What is acknowledged is forgotten, and is no news")
    mutating func acknowledged() throws {
        _ = try attach("a")
        add(1, to: "a")
        add(2, to: "a")
        complete(1)
        complete(2)
        #expect(try attach("a").results.keys == [gid(1), gid(2)])
        _ = table.detach("a", now: now)
        #expect(table.acknowledge([gid(1), gid(7)], of: "b").count == 0)
        #expect(table.acknowledge([gid(1), gid(7)], of: "a").actions == [.forget(gid(1))])
        #expect(table.stopped == [gid(2)])
        #expect(table.acknowledge(nil, of: "a").count == 1)
        _ = table.detach("a", now: now)
        #expect(tick(after: .seconds(1000)).isEmpty)
        #expect(table.stopped.isEmpty)
    }

    @Test("Each download of a session ends in one result, also one that is removed as it waits")
    mutating func removed() throws {
        add(1, to: "a", ["pause": "true"])
        let actions = try table.remove(gid(1), now: now, date: 5)
        #expect(
            actions.contains {
                if case .notify(let told) = $0 { told.event == .stop } else { false }
            }
        )
        let results = try attach("a").results
        #expect(results[gid(1)] == Session.Result(event: .stop, date: 5))
    }

    @Test("A session sees its own downloads alone, and nobody else takes its results away")
    mutating func apart() throws {
        add(1, to: "a")
        add(2, to: "b", ["pause": "true"])
        add(3, to: nil, ["pause": "true"])
        add(4, to: nil)
        complete(1)
        complete(4)
        #expect(table.seen(by: nil).stopped == [gid(1), gid(4)])
        #expect(table.seen(by: "a").stopped == [gid(1)])
        #expect(table.seen(by: "a").order.isEmpty)
        #expect(table.seen(by: "b").order == [gid(2)])
        #expect(throws: RPCError.self) { try table.gid("\(gid(2))", seenBy: "a") }
        _ = table.unpauseAll(of: "b", now: now)
        #expect(table.live[gid(3)]?.record.state == .paused)
        #expect(throws: RPCError.self) { try table.removeResult(gid(1), seenBy: nil) }
        _ = table.purge(of: nil)
        #expect(table.stopped == [gid(1)])
        _ = try table.removeResult(gid(1), seenBy: "a")
        #expect(table.stopped.isEmpty)
        // An option of the call cannot move one.
        _ = try table.change(gid(3), options: ["session": "a"], now: now)
        #expect(table.seen(by: "a").order.isEmpty)
    }

    @Test("A result stays for 90 days")
    mutating func expired() {
        let date: Int64 = 1_800_000_000
        add(1, to: "a")
        add(2, to: nil)
        complete(1, date: date)
        complete(2, date: date)
        _ = tick(date: date + 90 * Self.day - 1)
        #expect(table.stopped == [gid(1), gid(2)])
        _ = tick(date: date + 90 * Self.day)
        #expect(table.stopped == [gid(2)])
        #expect(table.sessions.isEmpty)
    }

    @Test("The next process gives applications a minute, unless the command has run")
    mutating func nextProcess() throws {
        _ = try attach("a")
        add(1, to: "a")
        complete(1)
        for hasRun in [false, true] {
            var result = DownloadRecord(
                gid: gid(1),
                uris: ["http://a/1"],
                options: DownloadOptions(),
                rank: 1
            )
            (result.state, result.session, result.stopped) = (.complete, "a", 1)
            var next = DownloadTable(
                stopped: [gid(1)],
                results: [gid(1): try #require(JournalResult(result))],
                sessions: [
                    Session.Record(name: "a", command: Self.command, hasRun: hasRun),
                    Session.Record(name: "new", command: Self.command),
                ]
            )
            #expect(next.sessions.keys.sorted() == ["a", "new"])
            next.beginSessions(now: now)
            #expect(next.isBusy == !hasRun)
            let early = next.lookAfterSessions(now: now.advanced(by: .seconds(59)), date: 1)
            #expect(early.isEmpty)
            let late = next.lookAfterSessions(now: now.advanced(by: .seconds(60)), date: 1)
            #expect(late.isEmpty == hasRun)
        }
    }

    @Test("Names and commands are checked, and commands are bounded")
    mutating func forms() throws {
        #expect(SessionForm.isName("org.example.app-1_2"))
        for name in ["", "a b", "ä", "a/b", "a\n", String(repeating: "a", count: 129)] {
            #expect(!SessionForm.isName(name), "\(name)")
        }
        #expect(SessionForm.isCommand(["a", ""]))
        for words in [[], [""], ["A=b"], ["a", "\n"], [String(repeating: "a", count: 2049)]] {
            #expect(!SessionForm.isCommand(words))
        }
        for number in 0..<128 { _ = try attach("s\(number)") }
        #expect(throws: RPCError.self) { try attach("more") }
        _ = try table.attach("more", command: nil)
        for _ in 1..<16 { _ = try table.attach("more", command: nil) }
        #expect(throws: RPCError.self) { try table.attach("more", command: nil) }
        // One that nothing came of makes room.
        _ = table.detach("s7", now: now)
        _ = try attach("new")
        #expect(table.sessions["s7"] == nil)
    }

    @Test("A command waits for the downloads that it was set for, and is forgotten with the last")
    mutating func expecting() throws {
        _ = try attach("a")
        _ = table.detach("a", now: now)
        #expect(tick(after: .seconds(1)).isEmpty)
        _ = table.acknowledge(nil, of: "a")
        add(1, to: "a")
        complete(1)
        #expect(tick() == ["a"])
        _ = table.acknowledge(nil, of: "a")
        #expect(table.sessions.isEmpty)
    }

    @Test("A result of a clock that was not set stays")
    mutating func unsetClock() {
        add(1, to: "a")
        complete(1, date: 7)
        _ = tick(date: 1_800_000_000)
        #expect(table.stopped == [gid(1)])
    }

    @Test("A command is run by env, or by the user's systemd")
    func launch() {
        let command = SessionCommand(session: "a", words: ["app", "x $y"])
        let own = SessionLaunch(command, socket: "/run/s", userManager: nil)
        #expect(
            own.arguments == [
                "/usr/bin/env", "--unset=TIEREDCACHE_RPC_SECRET", "--", "TIEREDCACHE_SESSION=a",
                "TIEREDCACHE_SOCKET=/run/s", "app", "x $y",
            ]
        )
        let unit = SessionLaunch(command, socket: nil, userManager: "/usr/bin/systemd-run")
        #expect(
            unit.arguments == [
                "/usr/bin/systemd-run", "--user", "--quiet", "--collect",
                "--setenv=TIEREDCACHE_SESSION=a", "--", "app", "x $$y",
            ]
        )
    }
}
