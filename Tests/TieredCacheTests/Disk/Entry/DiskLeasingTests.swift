import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Bytes that the kernel sends from the file: verified ones only, and they stay as long as that
/// takes.
@Suite("Disk: leasing", .timeLimit(.minutes(10)))
struct DiskLeasingTests {
    private static let film = bytes(4 << 20, seed: 5)

    private let disk = TestDisk(.posix)

    private func open(limit: Int64 = 64 << 20) throws -> DiskStore {
        var options = disk.options(limit: limit)
        options.hugeBody = 1 << 20
        options.headLength = 131_072
        let warm = WatchedFileSystem(POSIXFileSystem(), isWarm: true) { _, _ in }
        return try DiskStore(options, fileSystem: warm, timeSource: disk.time)
    }

    /// What the kernel would send.
    private func sent(_ leased: LeasedBytes) -> [UInt8] {
        var result = [UInt8](repeating: 0xEE, count: leased.place.count)
        let count = result.withUnsafeMutableBytes {
            pread(leased.descriptor, $0.baseAddress, $0.count, off_t(leased.place.lowerBound))
        }
        return Array(result[..<max(0, count)])
    }

    @Test("what was written or read by this process can be leased, in files and in records")
    func verified() throws {
        let store = try open()
        for (name, body) in [("file", Self.film), ("record", bytes(3000))] {
            let entry = try store.store(body, for: key(name))
            let leased = try #require(entry.lease(5..<2000))
            #expect(leased.range == 5..<2000 && leased.checkFile())
            #expect(body.holds(sent(leased), at: 5))
        }
    }

    @Test("what was not verified yet is not leased; what was, up to the first block that was not")
    func unverified() throws {
        try open().store(Self.film, for: key("film"))
        let store = try open()
        let entry = try #require(try store.entry(for: key("film")))
        #expect(entry.lease(0..<100) == nil)
        #expect(Self.film.holds(entry.read(at: 0, 131_072), at: 0))
        #expect(entry.lease(5..<1 << 20)?.range == 5..<131_072)
        #expect(entry.lease(131_072..<131_073) == nil)
    }

    @Test("what does not exist, and what a guest reads, is not leased")
    func others() throws {
        let owner = try open()
        let entry = try owner.store(Self.film, for: key("film"))
        #expect(entry.lease(4 << 20..<5 << 20) == nil)
        #expect(entry.lease(-5..<5) == nil)
        let reader = try open()
        let guest = try #require(try reader.entry(for: key("film")))
        _ = guest.read(4 << 20)
        #expect(guest.lease(0..<100) == nil)
    }

    @Test("a leased block keeps its bytes when cold blocks are given up, and another one does not")
    func givingUp() throws {
        let store = try open(limit: 5 << 20)
        let entry = try store.store(Self.film, for: key("film"))
        let start: Int64 = 3 << 20
        var leased = entry.lease(start..<start + 100_000)
        // Playing at the beginning: what was leased is the coldest there is.
        #expect(Self.film.holds(entry.read(at: 0, 65_536), at: 0))
        try store.store(bytes(2 << 20, seed: 9), for: key("new"))
        // What is read and what is sent stays, with what comes next; the rest had to go.
        for kept: Range<Int64> in [0..<524_288, start..<start + 524_288] {
            #expect(
                entry.storedRange(at: kept.lowerBound).map { $0.upperBound >= kept.upperBound }
                    == true
            )
        }
        #expect(!entry.isComplete)
        #expect(try Self.film.holds(sent(#require(leased)), at: Int(start)))
        leased = nil
        #expect(entry.state.withLock { $0.leased.isEmpty })
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("bytes given up while they are leased stay in the file, and are a gap all the same")
    func leasedMeanwhile() throws {
        let store = try open()
        let entry = try store.store(Self.film, for: key("film"))
        let leased = try #require(entry.lease(65_536..<131_072))
        try store.withLock(of: entry.name) { lock in
            try entry.giveUp(lock, runs: [0..<4]) { #expect($0 == [0..<1, 2..<4]) }
        }
        #expect(entry.storedRange(at: 65_536) == nil)
        #expect(entry.lease(65_536..<131_072) == nil)
        #expect(Self.film.holds(sent(leased), at: 65_536))
    }

    @Test("what is removed or replaced can be sent to its end")
    func removed() throws {
        let store = try open()
        let leased = try #require(try store.store(Self.film, for: key("film")).lease(0..<1 << 20))
        try store.store(bytes(2 << 20, seed: 9), for: key("film"))
        try store.remove(key("film"))
        #expect(Self.film.holds(sent(leased), at: 0) && leased.checkFile())
    }

    @Test("what is leased when its store is closed stays in the file under the next owner")
    func closed() throws {
        let store = try open()
        var entry: DiskEntry? = try store.store(Self.film, for: key("film"))
        let start: Int64 = 3 << 20
        var leased = entry?.lease(start..<start + 100_000)
        store.close()
        let next = try open()
        try next.loadIndex()
        let again = try #require(try next.entry(for: key("film")))
        // Playing at the beginning: what was leased is the coldest there is.
        #expect(Self.film.holds(again.read(at: 0, 65_536), at: 0))
        #expect(next.giveUpColdBlocks(2 << 20) == 0)
        #expect(try Self.film.holds(sent(#require(leased)), at: Int(start)))
        #expect(try again.isComplete && next.verify(repair: false).damaged == 0)
        leased = nil
        entry = nil
        #expect(next.giveUpColdBlocks(1 << 20) > 0)
    }

    @Test("a file that was truncated from outside is noticed")
    func truncated() throws {
        let store = try open()
        let leased = try #require(try store.store(Self.film, for: key("film")).lease(0..<1 << 20))
        for (path, size) in disk.files where size > 1 << 20 {
            #expect(truncate(disk.root.appending(path).string, 100) == 0)
        }
        #expect(!leased.checkFile())
    }
}
