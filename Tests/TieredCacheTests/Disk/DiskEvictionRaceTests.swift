import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// What happens to an entry after an eviction has chosen it, and before its files are removed.
@Suite("Disk: chosen to leave", .timeLimit(.minutes(10)))
struct DiskEvictionRaceTests {
    private typealias Intruder = DiskRace.Intruder
    private typealias Worker = DiskRace.Worker

    @Test(
        "what is written to an entry that is about to leave is charged",
        arguments: [(1, 3), (20, 30)]
    )
    func fillAndEvict(before: Int, after: Int) throws {
        let disk = TestDisk(.memory)
        let intruder = Intruder()
        let store = try DiskRace.open(disk, intruder) { _ in }
        let film = bytes(2 << 20, seed: 3)
        let block = 65_536
        try store.makeEntry(for: key("film"), metadata: [], completeLength: Int64(film.count))
            .beginWriting(at: 0).write(film[..<(before * block)])
        store.closeIdle()
        let reading = Guarded<DiskEntry?>(nil)
        // The record is read for its key once the entry was chosen.
        intruder.arm(at: .open, of: ".record") {
            let worker = Worker()
            worker.start {
                let entry = try #require(try store.entry(for: key("film")))
                try entry.beginWriting(at: Int64(before * block))
                    .write(film[(before * block)..<(after * block)])
                reading.withLock { $0 = entry }
            }
            worker.join()
        }
        try store.trim(to: 0)
        try #require(reading.withLock { $0 != nil })
        #expect(store.chargedBytes >= disk.memory.allocatedBytes)
        _ = reading.withLock { $0.take() }
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    /// Stores a film, has it chosen to leave, and does something right before it leaves.
    private func evict(
        _ disk: TestDisk,
        size: Int,
        to limit: Int64 = 0,
        while work: @escaping @Sendable (DiskStore) throws -> Void
    ) throws -> DiskStore {
        let intruder = Intruder()
        let store = try DiskRace.open(disk, intruder) { _ in }
        try store.store(Array(DiskRace.film[..<size]), for: key("film"))
        store.closeIdle()
        // The record is read for its key once the entry was chosen.
        intruder.arm(at: .open, of: ".record") {
            let worker = Worker()
            worker.start { try work(store) }
            worker.join()
        }
        try store.trim(to: limit)
        return store
    }

    @Test("what is removed while it is about to leave is charged as long as it is read")
    func removeAndEvict() throws {
        let disk = TestDisk(.memory)
        let reading = Guarded<DiskEntry?>(nil)
        let store = try evict(disk, size: 300_000) { store in
            let entry = try #require(try store.entry(for: key("film")))
            reading.withLock { $0 = entry }
            #expect(try store.remove(key("film")))
        }
        let entry = try #require(reading.withLock { $0 })
        #expect(firstDifference(entry.read(300_000), Array(DiskRace.film[..<300_000])) == nil)
        #expect(store.chargedBytes >= disk.memory.allocatedBytes)
        #expect(disk.memory.allocatedBytes > 300_000)
    }

    @Test(
        "an entry that goes before its eviction has closed its file is charged until then",
        arguments: [1000, 300_000],
        [false, true]
    )
    func closeAndEvict(size: Int, isReplaced: Bool) throws {
        let disk = TestDisk(.memory)
        let intruder = Intruder()
        let store = try DiskRace.open(disk, intruder)
        let file = try Self.fileOfNewFilm(size: size, in: store)
        let unlinked = Guarded(false)
        intruder.arm(atClosing: file) { [store] in
            let worker = Worker()
            worker.start {
                guard !isReplaced else {
                    _ = try store.makeEntry(for: key("film"), metadata: [], completeLength: 500_000)
                    return
                }
                #expect(try store.remove(key("film")))
            }
            worker.join()
            #expect(store.chargedBytes >= disk.memory.allocatedBytes)
            unlinked.withLock { $0 = disk.memory.allocatedBytes - disk.allocatedBytes >= size }
        }
        try store.trim(to: 0)
        #expect(unlinked.withLock { $0 })
        #expect(disk.memory.allocatedBytes == disk.allocatedBytes)
        #expect(store.chargedBytes == disk.allocatedBytes)
    }

    /// Stores a film, and leases it no longer.
    ///
    /// - Returns: the file that its entry has open.
    private static func fileOfNewFilm(size: Int, in store: DiskStore) throws -> OpenFile {
        let entry = try store.store(Array(DiskRace.film[..<size]), for: key("film"))
        return try #require(entry.state.withLock { $0.body })
    }

    @Test("what is replaced while it is about to leave keeps its bytes for its readers")
    func replaceAndEvict() throws {
        let disk = TestDisk(.memory)
        let reading = Guarded<DiskEntry?>(nil)
        let store = try evict(disk, size: 2 << 20) { store in
            let entry = try #require(try store.entry(for: key("film")))
            #expect(firstDifference(entry.read(2 << 20), DiskRace.film) == nil)
            reading.withLock { $0 = entry }
            _ = try store.makeEntry(for: key("film"), metadata: [], completeLength: 500_000)
        }
        let entry = try #require(reading.withLock { $0 })
        #expect(firstDifference(entry.read(2 << 20), DiskRace.film) == nil)
        #expect(store.chargedBytes >= disk.memory.allocatedBytes)
        #expect(disk.paths(".body").isEmpty)
    }

    @Test("the files of an entry that is replaced go, also where it is chosen to leave just then")
    func chooseAndReplace() throws {
        let disk = TestDisk(.memory)
        let store = try DiskRace.open(disk, Intruder())
        let name = store.name(of: key("film"))
        let isDone = Guarded(false)
        let chooser = Worker()
        // Chooses the entry again and again, as an eviction does, and spares it.
        chooser.start {
            while !isDone.withLock({ $0 }) {
                store.state.withLock { state in
                    guard let slot = state.entries.index[name] else { return }
                    state.entries.takeVictim(slot)
                }
                store.withLock(of: name) { _ in
                    store.state.withLock { state in
                        guard let victim = state.entries.victim(name) else { return }
                        state.entries.spareVictim(victim)
                    }
                }
            }
        }
        defer {
            isDone.withLock { $0 = true }
            chooser.join()
        }
        for round in 0..<2000 {
            try store.store(Array(DiskRace.film[..<70_000]), for: key("film"))
            _ = try store.makeEntry(for: key("film"), metadata: [], completeLength: 70_000)
            try #require(disk.paths(".body").isEmpty, "round \(round)")
            try #require(store.chargedBytes == disk.memory.allocatedBytes, "round \(round)")
        }
    }

    @Test("what is about to become a head goes with everything else")
    func removeAllAndEvict() throws {
        let disk = TestDisk(.memory)
        let store = try evict(disk, size: 2 << 20, to: 1 << 20) { try $0.removeAll() }
        #expect(try store.usage().entries == 0)
        #expect(disk.paths(".record").isEmpty && disk.paths(".body").isEmpty)
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("what is pinned while it is about to leave hands its pin on")
    func pinReplaceAndEvict() throws {
        let disk = TestDisk(.memory)
        let store = try evict(disk, size: 300_000) { store in
            #expect(try store.setPinned(true, of: key("film")))
            store.closeIdle()
            _ = try store.makeEntry(for: key("film"), metadata: [], completeLength: 500_000)
        }
        let entry = try #require(try store.entry(for: key("film")))
        #expect(entry.isPinned && entry.read(300_000).count == 300_000)
    }

    @Test("a damaged body that is fetched again while it is about to leave stays")
    func repairAndEvict() throws {
        let disk = TestDisk(.memory)
        let intruder = Intruder()
        do { try disk.open().store(bytes(60_000), for: key("film")) }
        let path = disk.paths(".record")[0]
        var content = try disk.content(path)
        content[content.count - 1] ^= 1
        try disk.write(content, path)
        let store = try DiskRace.open(disk, intruder) { _ in }
        try store.loadIndex()
        let reading = Guarded<DiskEntry?>(nil)
        intruder.arm(at: .open, of: ".record") {
            let worker = Worker()
            worker.start {
                let entry = try #require(try store.entry(for: key("film")))
                #expect(entry.read(60_000).isEmpty)
                try entry.beginWriting(at: 0).write(bytes(60_000))
                reading.withLock { $0 = entry }
            }
            worker.join()
        }
        try store.trim(to: 0)
        #expect(store.chargedBytes == disk.memory.allocatedBytes)
        let entry = try #require(try store.entry(for: key("film")))
        #expect(firstDifference(entry.read(60_000), bytes(60_000)) == nil)
        #expect(reading.withLock { $0.take() } === entry)
    }

    @Test("what is pinned while it is about to leave stays", arguments: [1000, 300_000])
    func pinAndEvict(size: Int) throws {
        let disk = TestDisk(.memory)
        let intruder = Intruder()
        let store = try DiskRace.open(disk, intruder) { _ in }
        let body = bytes(size)
        try store.store(body, for: key("film"))
        store.closeIdle()
        let isPinned = Guarded(false)
        // The record is read for its key once it was chosen.
        intruder.arm(at: .open, of: ".record") { [store] in
            let worker = Worker()
            worker.start {
                let wasThere = try store.setPinned(true, of: key("film"))
                isPinned.withLock { $0 = wasThere }
            }
            worker.join()
        }
        try store.trim(to: 0)
        #expect(isPinned.withLock { $0 })
        for store in [store, try disk.open()] {
            let entry = try #require(try store.entry(for: key("film")))
            #expect(entry.isPinned && entry.isComplete && entry.read(size) == body)
        }
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
        try store.trim(to: 0)
        #expect(try store.entry(for: key("film")) != nil)
    }
}
