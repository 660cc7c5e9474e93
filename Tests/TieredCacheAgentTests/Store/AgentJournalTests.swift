import FoundationEssentials
import SystemPackage
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheAgent

@Suite("The journal of downloads", .timeLimit(.minutes(10)))
struct AgentJournalTests {
    private let files: TemporaryDirectory
    private var path: FilePath { files.appending("agent").appending("journal") }

    init() throws {
        files = try TemporaryDirectory("tieredcache-journal")
    }

    private var url: URL { URL(filePath: path.string) }

    private func bytes() throws -> Data { try Data(contentsOf: url) }

    private func record(
        _ number: UInt64,
        _ state: DownloadRecord.State = .waiting
    )
        -> DownloadRecord
    {
        var record = DownloadRecord(
            gid: GID(number: number),
            uris: ["http://a/\(number)"],
            options: DownloadOptions(["dir": "/d"]),
            rank: Int64(number)
        )
        record.state = state
        return record
    }

    private func write(_ changes: [AgentJournal.Change]) throws {
        var contents = AgentJournal.Contents()
        var journal = try AgentJournal.open(in: files.path, reading: &contents)
        for change in changes { try journal.append([change]) }
    }

    private func read() throws -> AgentJournal.Contents {
        var contents = AgentJournal.Contents()
        _ = try AgentJournal.open(in: files.path, reading: &contents)
        return contents
    }

    private func numbers(_ contents: AgentJournal.Contents) -> [UInt64] {
        contents.records.map(\.gid.number).sorted()
    }

    @Test("Numbers that nothing can be added to are no record")
    func ranks() throws {
        for rank in [Int64.min, -1, .max] {
            let frame = JournalFrame(kind: .record, number: 1, rank: rank)
            #expect(JournalFrame(frame.bytes[...]) == nil, "\(rank)")
        }
        var old = record(1, .complete)
        (old.session, old.stopped, old.tries) = ("app", .min, .max)
        try write([.save(old)])
        let told = try #require(try read().results[old.gid])
        #expect(told.result.date == 0)
        var waiting = record(2)
        waiting.tries = .max
        try write([.save(waiting)])
        #expect(try read().records.first?.tries == .max >> 1)
    }

    @Test("Results of sessions and their commands are read again")
    func sessions() throws {
        var result = record(1, .complete)
        result.session = "app"
        let sessions = [Session.Record(name: "app", command: ["/bin/app"], hasRun: true)]
        try write([
            .save(record(2, .complete)), .sessions([]), .save(result), .sessions(sessions),
        ])
        let told = try #require(JournalResult(result))
        #expect(try read().results == [result.gid: told])
        #expect(told.session == "app" && told.result.event == .complete)
        #expect(try read().sessions == sessions)
        // A copy keeps them: more than half of what follows is of no use, and more than 1 MiB.
        var long = record(3)
        long.options.set("x", to: String(repeating: "x", count: 60_000))
        try write(Array(repeating: .save(long), count: 40))
        #expect(try bytes().count < 1 << 21)
        #expect(try read().sessions == sessions)
        #expect(try read().results == [result.gid: told])
        try write([.forget(result.gid)])
        #expect(try read().results.isEmpty)
    }

    @Test("The last state of each download is read again")
    func roundTrip() throws {
        var paused = record(2, .paused)
        paused.total = 7
        paused.delivery = DownloadRecord.Delivery(path: "/x", device: 1, file: .max)
        paused.lacksSecrets = true
        try write([
            .save(record(1)), .save(record(2)), .save(record(3)), .save(record(4)),
            .save(paused), .forget(GID(number: 3)), .save(record(4, .complete)),
            .options(DownloadOptions(["split": "4"])), .save(record(5, .error)),
        ])
        let contents = try read()
        #expect(numbers(contents) == [1, 2])
        #expect(contents.records.contains(paused))
        #expect(contents.stopped.map(\.number) == [4, 5])
        #expect(contents.options == DownloadOptions(["split": "4"]))
        #expect(contents.lastRank == 5 && contents.unreadable == 0)
    }

    @Test("Cut anywhere, all whole frames before count, and writing goes on")
    func tornTail() throws {
        try write([.save(record(1)), .save(record(2)), .save(record(3))])
        let whole = try bytes()
        let frame = (whole.count - 8) / 3
        for count in stride(from: 8, to: whole.count, by: 7) {
            try whole.prefix(count).write(to: url)
            let kept = UInt64((count - 8) / frame)
            #expect(numbers(try read()) == Array(1...3).filter { $0 <= kept }, "\(count)")
            try write([.save(record(9))])
            #expect(numbers(try read()) == Array(1...3).filter { $0 <= kept } + [9], "\(count)")
        }
    }

    @Test("A damaged frame costs its own download at most")
    func damage() throws {
        try write([.save(record(1)), .save(record(2)), .save(record(3))])
        let whole = try bytes()
        let frame = (whole.count - 8) / 3
        for index in stride(from: 8, to: whole.count, by: 5) {
            var changed = whole
            changed[index] ^= 0x41
            try changed.write(to: url)
            let lost = UInt64((index - 8) / frame + 1)
            #expect(numbers(try read()) == [1, 2, 3].filter { $0 != lost }, "\(index)")
        }
    }

    @Test("A journal of another version is refused and left as it is")
    func version() throws {
        try write([.save(record(1))])
        var changed = try bytes()
        changed[6] = 2
        try changed.write(to: url)
        let error = #expect(throws: CacheError.self) { try read() }
        #expect(error?.code == .formatTooNew)
        #expect(try bytes() == changed)
    }

    @Test("What is of no use leaves, and records are read at their new places")
    func compaction() throws {
        var contents = AgentJournal.Contents()
        var journal = try AgentJournal.open(in: files.path, reading: &contents)
        try journal.append([.options(DownloadOptions(["split": "4"])), .save(record(7, .complete))])
        let size = { try bytes().count }
        for round in 0..<40 {
            try journal.append((0..<200).map { _ in .save(record(UInt64(round % 3 + 1), .paused)) })
            #expect(try size() < 3 << 20)
        }
        #expect(try journal.record(GID(number: 7)) == record(7, .complete))
        #expect(try journal.record(GID(number: 8)) == nil)
        let read = try read()
        #expect(numbers(read) == [1, 2, 3])
        #expect(read.stopped.map(\.number) == [7])
        #expect(read.options["split"] == "4")
    }
}
