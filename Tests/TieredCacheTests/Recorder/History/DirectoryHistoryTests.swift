import Dispatch
import FoundationEssentials
import HTTPCaching
import Logging
import SystemPackage
import Testing
import TieredCacheTesting

@testable import TieredCache

/// What is kept with a directory of what happened in it, over several processes' lives.
@Suite("History of a directory", .timeLimit(.minutes(10)))
struct DirectoryHistoryTests {
    private let disk = InMemoryFileSystem()
    private let time = ManualTimeSource()

    private func withCache<Value>(
        _ change: (inout MediaCache.Configuration) -> Void = { _ in },
        _ body: (MediaCache) async throws -> Value
    ) async throws -> Value {
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.timeSource = time
        configuration.respondsToMemoryPressure = false
        configuration.minimumFreeDisk = 0
        configuration.diskLimit = 16 << 20
        configuration.networkMonitor = nil
        change(&configuration)
        let cache = try MediaCache(configuration, fileSystem: disk)
        do {
            let value = try await body(cache)
            await cache.shutdown()
            return value
        } catch {
            await cache.shutdown()
            throw error
        }
    }

    private func request(_ name: String) throws -> CacheRequest {
        var request = try CacheRequest("http://127.0.0.1:9/\(name)?secret=1")
        request.policy = .cacheOnly
        return request
    }

    private func miss(_ cache: MediaCache, _ name: String) async throws {
        do {
            _ = try await cache.data(for: request(name))
            Issue.record("\(name) is held")
        } catch let error as CacheError {
            #expect(error.code == .notCached)
        }
    }

    private func events(_ cache: MediaCache, _ name: String? = nil) async throws -> [String] {
        let wanted = try name.map { try self.request($0) }
        return try await cache.recordedEvents(for: wanted).map { event in
            event.reason.map { "\(event.kind.rawValue) \($0)" } ?? event.kind.rawValue
        }
    }

    @Test("counts are the sums of all lives of the directory")
    func sums() async throws {
        try await withCache { cache in
            let none = try await cache.lifetimeStatistics()
            #expect(none?.statistics == MediaCache.Statistics())
            try await miss(cache, "a")
            try await cache.store(Data([1, 2, 3]), for: request("a"))
            let bytes = try await cache.data(for: request("a"))
            #expect(bytes == Data([1, 2, 3]))
            let some = try await cache.lifetimeStatistics()
            #expect(some?.statistics == cache.statistics)
        }
        let start = time.wallTime()
        time.advance(by: .seconds(100))
        try await withCache { cache in
            #expect(try await cache.data(for: request("a")) == Data([1, 2, 3]))
            try await cache.store(Data([4]), for: request("a"))
            #expect(try await cache.remove(request("a")))
            let lifetime = try #require(try await cache.lifetimeStatistics())
            #expect(lifetime.since == start)
            let sums = lifetime.statistics
            #expect(sums.memoryHits == 1 && sums.diskHits == 1 && sums.misses == 1)
            #expect(sums.missesAbsent == 1 && sums.hitRatio == 2.0 / 3)
            #expect(sums.entriesReplaced == 1 && sums.entriesRemoved == 1)
            #expect(sums.bytesFromMemory == 3 && sums.bytesFromDisk == 3)
        }
    }

    @Test("why entries left and lookups missed is told, oldest first, by URL and without its query")
    func explained() async throws {
        try await withCache { cache in
            try await miss(cache, "a")
            try await cache.store(Data([1]), for: request("a"))
            try await cache.store(Data([2]), for: request("b"))
            try await cache.store(Data([3]), for: request("a"))
            try await cache.trim(to: 0)
        }
        try await withCache { cache in
            try await miss(cache, "b")
            #expect(
                try await events(cache, "a") == [
                    "missed absent", "stored", "replaced", "stored", "evicted trimmed",
                ]
            )
            #expect(
                try await events(cache, "b") == ["stored", "evicted trimmed", "missed absent"]
            )
            let all = try await cache.recordedEvents()
            #expect(all.count == 8)
            #expect(
                Set(all.map(\.url)) == ["http://127.0.0.1:9/a?...", "http://127.0.0.1:9/b?..."]
            )
            #expect(try await cache.recordedEvents(since: time.wallTime()).count == 8)
            time.advance(by: .seconds(1))
            #expect(try await cache.recordedEvents(since: time.wallTime()).isEmpty)
            try await cache.store(Data([3]), for: request("c"))
            try await cache.removeAll()
            #expect(try await events(cache, "c") == ["stored", "removed everything"])
        }
        #expect(
            disk.files.keys.allSatisfy { path in
                let text = String(decoding: disk.content(of: path) ?? [], as: UTF8.self)
                return !text.contains("secret") || path.hasSuffix(".record")
            }
        )
    }

    @Test("damage is told: a block, a record")
    func damage() async throws {
        let body = Data(bytes(200_000))
        try await withCache { cache in
            try await cache.store(body, for: request("film"))
            try await cache.store(Data([1]), for: request("page"))
        }
        let paths = disk.files.keys.filter { $0.contains("/entries/") }
        let film = try #require(paths.first { $0.hasSuffix(".body") })
        let name = film.split(separator: "/").last?.prefix(32) ?? ""
        let page = try #require(paths.first { $0.hasSuffix(".record") && !$0.contains(name) })
        #expect(disk.tamper(film) { $0[70_000] ^= 1 })
        #expect(disk.tamper(page) { $0[70] ^= 1 })
        try await withCache {
            $0.readsDirectoryOnOpening = false
        } _: { cache in
            try await miss(cache, "film")
            try await miss(cache, "page")
            try await cache.store(Data([2]), for: request("page"))
            #expect(try await events(cache, "film").contains("corrupted block"))
            #expect(try await events(cache, "page").contains("corrupted record"))
            let sums = try #require(try await cache.lifetimeStatistics()).statistics
            #expect(sums.blocksDamaged == 1)
            #expect(sums.entriesCorrupted == 1)
        }
    }

    @Test("sums that are damaged are noticed, told, and begin afresh", arguments: [0, 20, 60])
    func damagedSums(offset: Int) async throws {
        try await withCache { cache in try await miss(cache, "a") }
        #expect(disk.tamper("/cache/STATS") { $0[offset] ^= 4 })
        time.advance(by: .seconds(5))
        try await withCache { cache in
            try await miss(cache, "b")
            let lifetime = try #require(try await cache.lifetimeStatistics())
            #expect(lifetime.since == time.wallTime())
            #expect(lifetime.statistics.misses == 1)
            #expect(try await events(cache).last == "corrupted statistics")
        }
        try await withCache { cache in
            let lifetime = try await cache.lifetimeStatistics()
            #expect(lifetime?.statistics.misses == 1)
            let verification = try await cache.verify()
            #expect(verification.damaged == 0)
        }
    }

    @Test("deleting any of the files costs what was in it")
    func deleted() async throws {
        for name in HistoryFile.names {
            try await withCache { cache in try await miss(cache, "a") }
            disk.delete("/cache/\(name)")
            try await withCache { cache in
                try await miss(cache, "a")
                #expect(try await cache.lifetimeStatistics()?.statistics.misses ?? 0 > 0)
                #expect(try await events(cache).last == "missed absent")
            }
        }
    }

    @Test("the log is bounded, and the newest events are those that are kept")
    func bounded() async throws {
        let most = HistoryFiles.maximumEventLength(limit: 16 << 20)
        for round in 0..<4 {
            try await withCache { cache in
                for number in 0..<300 { try await miss(cache, "page\(round)-\(number)") }
            }
            for name in [HistoryFile.events, HistoryFile.olderEvents] {
                #expect(disk.content(of: "/cache/\(name)")?.count ?? 0 <= most)
            }
        }
        try await withCache { cache in
            let last = try await cache.recordedEvents().last
            #expect(last?.url == "http://127.0.0.1:9/page3-299?...")
            let usage = try await cache.usage()
            #expect(usage.bytes == disk.allocatedBytes)
        }
    }

    @Test("a torn last line costs that line")
    func torn() async throws {
        try await withCache { cache in try await miss(cache, "a") }
        #expect(disk.tamper("/cache/EVENTS") { $0.removeLast(40) })
        try await withCache { cache in
            try await miss(cache, "b")
            #expect(try await cache.recordedEvents().map(\.url) == ["http://127.0.0.1:9/b?..."])
        }
    }

    @Test("room for the log is set aside: the limit holds at every instant")
    func limit() async throws {
        try await withCache {
            $0.diskLimit = 4 << 20
        } _: { cache in
            for number in 0..<200 {
                try await cache.store(Data(bytes(60_000)), for: request("page\(number)"))
                try await miss(cache, "none\(number)")
                #expect(disk.allocatedBytes <= 4 << 20)
            }
            #expect(try await cache.usage().bytes <= 4 << 20)
        }
        #expect(disk.allocatedBytes <= 4 << 20)
        #expect(disk.peakAllocatedBytes <= 4 << 20)
    }

    @Test("every ten seconds what is new is written, so that a kill loses no more")
    func killed() async throws {
        try await withCache { cache in
            try await miss(cache, "a")
            await time.waitForSleeper(within: DirectoryHistory.interval)
            #expect(disk.content(of: "/cache/STATS") == nil)
            time.advance(by: DirectoryHistory.interval)
            // It sleeps again when it has written.
            await time.waitForSleeper(within: DirectoryHistory.interval)
            let found = disk.content(of: "/cache/STATS").flatMap(StatisticsRecord.decode)
            #expect(found?.statistics.misses == 1)
            #expect(disk.content(of: "/cache/EVENTS") != nil)
        }
    }

    @Test("a disk that fails costs the history, and nothing else")
    func failing() async throws {
        try await withCache { cache in
            try await miss(cache, "a")
            disk.fail(.create, with: .noSpace)
            disk.fail(.write, with: .noSpace)
        }
        disk.heal()
        try await withCache { cache in
            try await miss(cache, "b")
            #expect(try await cache.usage().bytes == disk.allocatedBytes)
            #expect(try await events(cache).last == "missed absent")
        }
    }

    @Test("no history where it is not wanted, or where the limit leaves no room")
    func off() async throws {
        try await withCache {
            $0.keepsHistory = false
        } _: { cache in
            try await miss(cache, "a")
            let lifetime = try await cache.lifetimeStatistics()
            #expect(lifetime == nil)
            let events = try await cache.recordedEvents()
            #expect(events.isEmpty)
        }
        try await withCache {
            $0.diskLimit = 1 << 20
        } _: { cache in
            try await miss(cache, "a")
        }
        #expect(disk.files.keys.sorted() == ["/cache/FORMAT", "/cache/LOCK"])
    }

    @Test("a guest sees what the owner has written, and writes nothing")
    func guest() async throws {
        try await withCache { owner in
            try await miss(owner, "a")
            _ = try await owner.recordedEvents()
            let before = disk.files
            try await withCache { guest in
                try await miss(guest, "b")
                #expect(try await events(guest) == ["missed absent"])
                #expect(try await guest.lifetimeStatistics()?.statistics.misses == 1)
            }
            #expect(disk.files == before)
        }
    }

    @Test("a log handler may ask for the history, whatever it is told")
    func askingHandler() async throws {
        try await withCache { cache in try await miss(cache, "a") }
        #expect(disk.tamper("/cache/STATS") { $0[0] ^= 4 })
        let handler = AskingHandler()
        try await withCache {
            $0.logger = Logger(label: "history") { _ in
                ListeningLogHandler { event, _ in handler.hear("\(event.message)") }
            }
        } _: { cache in
            handler.cache.withLock { $0 = cache }
            _ = try await cache.lifetimeStatistics()
            try await miss(cache, "b")
            disk.fail(.write, with: .noSpace)
            _ = try await cache.recordedEvents()
            disk.heal()
            handler.cache.withLock { $0 = nil }
        }
        let answers = handler.answers.withLock { $0 }
        #expect(answers.keys.sorted() == AskingHandler.lines && answers.values.allSatisfy { $0 })
    }
}

/// Asks a cache for its history at the first line of each kind, and waits for the answer.
private final class AskingHandler: Sendable {
    static let lines = ["history not written", "the counters restart at zero"]

    let cache = Guarded<MediaCache?>(nil)
    /// Whether there was one, by the line.
    let answers = Guarded<[String: Bool]>([:])

    func hear(_ line: String) {
        guard let cache = cache.withLock({ $0 }), Self.lines.contains(line),
            answers.withLock({ $0.updateValue(false, forKey: line) }) == nil
        else { return }
        let isAnswered = DispatchSemaphore(value: 0)
        Task.detached {
            do {
                _ = try await cache.lifetimeStatistics()
            } catch {
                Issue.record(error)
            }
            isAnswered.signal()
        }
        // A hang is a failure, and not the end of the tests.
        let isInTime = isAnswered.wait(timeout: .now() + 60) == .success
        answers.withLock { $0[line] = isInTime }
    }
}
