import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// The last lease may be given back on an event loop, which must not wait for the disk.
@Suite("Disk: last leases", .timeLimit(.minutes(10)))
final class DiskLastLeaseTests: Sendable {
    private let disk = TestDisk(.memory)
    private let calls = Guarded<[String]>([])
    private let later = LaterWork()

    private func open() throws -> DiskStore {
        var options = disk.options()
        options.runLater = { [later] in later.add($0) }
        let watched = WatchedFileSystem(
            disk.fileSystem,
            watchClosing: { [self] _ in calls.withLock { $0.append("close") } },
            watch: { [self] call, name in calls.withLock { $0.append("\(call) \(name)") } }
        )
        return try DiskStore(options, fileSystem: watched, timeSource: disk.time)
    }

    /// Runs `release`, which must call nothing, and then what it has left.
    ///
    /// - Returns: the calls.
    private func calls(of release: () -> Void) -> [String] {
        later.run()
        calls.withLock { $0 = [] }
        release()
        #expect(calls.withLock { $0 } == [])
        later.run()
        return calls.withLock { $0 }
    }

    @Test("the files of a replaced entry are closed later, and stay charged until then")
    func replaced() throws {
        let store = try open()
        var entry: DiskEntry? = try store.store(bytes(900_000), for: key("film"))
        try store.store(bytes(1000, seed: 2), for: key("film"))
        let leased = try store.usage().bytes
        #expect(leased > 900_000)
        #expect(entry?.isSuperseded == true)
        #expect(calls { entry = nil } == ["close"])
        #expect(try store.usage().bytes < leased - 900_000)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("the files of a successor that nobody completes are closed and removed later")
    func successor() throws {
        let store = try open()
        try store.store(bytes(200_000), for: key("film"), metadata: [], class: .pinned)
        var entry: DiskEntry? = try store.makeEntry(
            for: key("film"),
            metadata: [],
            completeLength: 200_000
        )
        try entry?.beginWriting(at: 0).write(bytes(65_536))
        let found = calls { entry = nil }
        #expect(found.count == 2 && found.first == "close", "\(found)")
        #expect(found.last?.hasPrefix("remove ") == true, "\(found)")
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("a lease that outlives its store closes its files later")
    func outliving() throws {
        var store: DiskStore? = try open()
        var entry = try store?.store(bytes(900_000), for: key("film"))
        store?.close()
        store = nil
        #expect(entry != nil)
        #expect(calls { entry = nil } == ["close"])
    }

    @Test("a writer that is given up closes the record later")
    func writer() throws {
        let store = try open()
        let entry = try store.makeEntry(for: key("film"), metadata: [], completeLength: 900_000)
        var writer: BodyWriter? = try entry.beginWriting(at: 0)
        try writer?.write(bytes(131_072 + 10))
        #expect(calls { writer = nil } == ["close"])
        #expect(entry.storedRanges.ranges == [0..<131_072])
    }

    @Test("what a thread gives back that is there to wait is closed at once")
    func waitingThread() async throws {
        let store = try open()
        let entry = Guarded<DiskEntry?>(try store.store(bytes(900_000), for: key("film")))
        try store.remove(key("film"))
        later.run()
        calls.withLock { $0 = [] }
        await IOExecutor(threads: 1).run {
            let last = entry.withLock { $0.take() }
            withExtendedLifetime(last) {}
        }
        #expect(calls.withLock { $0 } == ["close"])
    }
}

/// What a store leaves to be done later.
final class LaterWork: Sendable {
    private let works = Guarded<[@Sendable () -> Void]>([])

    func add(_ work: @escaping @Sendable () -> Void) { works.withLock { $0.append(work) } }

    /// Does the first of it.
    ///
    /// - Returns: false if there is none.
    func runOne() -> Bool {
        guard let work = works.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else {
            return false
        }
        work()
        return true
    }

    func run() {
        while runOne() {}
    }
}
