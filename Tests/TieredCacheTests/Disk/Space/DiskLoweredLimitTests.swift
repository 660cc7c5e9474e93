import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Below a lower limit there is much to evict, and no write waits for all of it.
@Suite("Disk: lowered limits", .timeLimit(.minutes(10)))
final class DiskLoweredLimitTests: Sendable {
    private let disk = TestDisk(.memory)
    private let removed = Guarded(0)
    private let later = LaterWork()

    private func open(limit: Int64) throws -> DiskStore {
        var options = disk.options(limit: limit)
        options.runLater = { [later] in later.add($0) }
        let watched = WatchedFileSystem(disk.fileSystem) { [self] call, _ in
            if call == .remove { removed.withLock { $0 += 1 } }
        }
        return try DiskStore(options, fileSystem: watched, timeSource: disk.time)
    }

    private func fill() throws {
        let store = try open(limit: 64 << 20)
        for number in 0..<1000 { try store.store(bytes(3000), for: key("\(number)")) }
        store.close()
        later.run()
    }

    /// Stores a body that is new.
    ///
    /// - Returns: whether it was stored, and how many files were removed for that.
    private func store(
        _ name: String,
        _ count: Int = 3000,
        in store: DiskStore
    ) -> (isStored: Bool, removed: Int) {
        removed.withLock { $0 = 0 }
        do throws(CacheError) {
            try store.store(bytes(count), for: key(name))
            return (true, removed.withLock { $0 })
        } catch {
            #expect(error.code == .localStorage)
            #expect(error.message.contains("until more is evicted"), "\(error)")
            return (false, removed.withLock { $0 })
        }
    }

    @Test("a directory with too much in it is emptied later, a batch at a time")
    func reopened() throws {
        try fill()
        let lower = try open(limit: 1 << 20)
        #expect(store("a", in: lower) == (false, 0))
        for _ in 0..<3 {
            removed.withLock { $0 = 0 }
            #expect(later.runOne())
            #expect(removed.withLock { $0 } == 64)
            #expect(store("b", in: lower) == (false, 0))
        }
        later.run()
        #expect(try lower.usage().bytes <= (1 << 20) / 100 * 95)
        #expect(store("c", in: lower) == (true, 0))
        #expect(try lower.usage().bytes == disk.allocatedBytes)
    }

    @Test("a write waits for one batch, the next ones for nothing, and the rest goes later")
    func manyForOne() throws {
        let store = try open(limit: 8 << 20)
        for number in 0..<1800 { try store.store(bytes(3000), for: key("\(number)")) }
        #expect(try store.usage().bytes > 7 << 20)
        #expect(self.store("film", 3 << 20, in: store) == (false, 64))
        #expect(self.store("film", 3 << 20, in: store) == (false, 0))
        later.run()
        #expect(self.store("film", 3 << 20, in: store).isStored)
        later.run()
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("where files cannot be removed, the eviction ends, and begins anew with the next write")
    func unremovable() throws {
        try fill()
        var options = disk.options(limit: 1 << 20)
        options.runLater = { [later] in later.add($0) }
        let lower = try DiskStore(options, fileSystem: disk.fileSystem, timeSource: disk.time)
        disk.memory.fail(.remove, with: .ioError, times: .max)
        for _ in 0..<2 {
            let error = #expect(throws: CacheError.self) {
                try lower.store(bytes(3000), for: key("a"))
            }
            #expect(error?.code == .localStorage)
            later.run()
        }
        disk.memory.heal()
        // The write waits for a batch, and the rest is still to be evicted.
        let error = #expect(throws: CacheError.self) {
            try lower.store(bytes(3000), for: key("a"))
        }
        #expect(error?.code == .localStorage)
        later.run()
        try lower.store(bytes(3000), for: key("a"))
        #expect(try lower.usage().bytes <= 1 << 20)
    }
}
