import HTTPCaching
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// A power cut at any call that changes STATS, EVENTS or EVENTS.1, with every state it may leave.
@Suite("History: power cuts", .timeLimit(.minutes(10)))
struct HistoryCrashTests {
    private static let outcomes = 25

    private static func sums(_ number: Int64) -> MediaCache.LifetimeStatistics {
        var statistics = MediaCache.Statistics()
        statistics.memoryHits = number
        statistics.bytesStored = number << 20
        return MediaCache.LifetimeStatistics(
            since: WallTime(seconds: 1_767_225_600),
            statistics: statistics
        )
    }

    private static func event(_ number: Int) -> MediaCache.RecordedEvent {
        MediaCache.RecordedEvent(
            time: WallTime(seconds: 1_767_225_600 + Int64(number)),
            kind: .stored,
            entry: key("\(number)").fileName,
            count: Int64(number),
            url: "https://media.example/title/\(number)/segment.m4s"
        )
    }

    /// As many lines as make a third of EVENTS.
    private static func lines(_ range: Range<Int>) -> [UInt8] {
        range.flatMap { Array(event($0).line.utf8) }
    }

    private static let batches = (0..<5).map { $0 * 45..<($0 + 1) * 45 }

    /// Everything that is ever written, and what LOCK and entries do meanwhile.
    private static func work(_ store: DiskStore) throws {
        let files = HistoryFiles(store: store)
        files.reserveSpace()
        for (number, batch) in batches.enumerated() {
            try files.append(lines(batch))
            try files.save(sums(Int64(number)))
        }
        try store.store(bytes(1000), for: key("entry"))
    }

    @Test("sums are some that were written or none; events are whole or not there; all goes on")
    func everyCall() throws {
        let memory = InMemoryFileSystem(time: ManualTimeSource(), remembersUnsynced: true)
        let store = try CrashDisk(memory).open()
        memory.syncEverything()
        let points = try memory.crashPoints { try Self.work(store) }
        // EVENTS became EVENTS.1 on the way.
        #expect(memory.files["/cache/EVENTS.1"] != nil)
        var found = (sums: 0, events: 0, damaged: 0)
        for (number, point) in points.enumerated() {
            let (disks, _) = point.afterCrashes(atMost: Self.outcomes, seed: 5)
            for (outcome, disk) in disks.enumerated() {
                try check(disk, "call \(number), outcome \(outcome)", &found)
            }
        }
        #expect(found.sums > 0 && found.events > 0)
    }

    private func check(
        _ disk: InMemoryFileSystem,
        _ context: String,
        _ found: inout (sums: Int, events: Int, damaged: Int)
    ) throws {
        let store = try CrashDisk(disk).open()
        let files = HistoryFiles(store: store)
        files.reserveSpace()
        do throws(CacheError) {
            if let sums = try files.loadStatistics() {
                let number = sums.statistics.memoryHits
                #expect(sums == Self.sums(number) && number < 5, "\(context)")
                found.sums += 1
            }
        } catch {
            // Renamed before its bytes were on the disk: said to be damaged, begins again.
            #expect(error.code == .localStorage, "\(context)")
            found.damaged += 1
        }
        let written = Set((0..<225).map { Self.event($0) })
        let events = try files.loadEvents()
        #expect(events.allSatisfy(written.contains), "\(context)")
        found.events += events.count
        try goOn(files, after: events, context)
        store.closeIdle()
        // A page that was lost counts as long as its file is there.
        let lost = HistoryFile.names.reduce(Int64(0)) { sum, name in
            let path = "/cache/\(name)"
            let size = FileStatus.wholePages(Int64(disk.content(of: path)?.count ?? 0))
            return sum + max(0, size - (disk.files[path] ?? 0))
        }
        #expect(try store.usage().bytes == disk.allocatedBytes + lost, "\(context)")
        #expect(disk.allocatedBytes <= store.limit, "\(context)")
        #expect(try store.verify(repair: false).damaged == 0, "\(context)")
    }

    private func goOn(
        _ files: HistoryFiles,
        after events: [MediaCache.RecordedEvent],
        _ context: String
    ) throws {
        try files.save(Self.sums(99))
        #expect(try files.loadStatistics() == Self.sums(99), "\(context)")
        let next = Self.event(999)
        try files.append(Array(next.line.utf8))
        let now = try files.loadEvents()
        #expect(now.last == next, "\(context)")
        // No torn line becomes one that was never written.
        #expect(Set(now.dropLast()).isSubset(of: events), "\(context)")
    }
}
