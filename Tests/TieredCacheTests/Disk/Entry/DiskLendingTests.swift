import SystemPackage
import Testing
import TieredCacheTesting

@testable import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Bytes that the kernel sends from the file: verified ones only, and they stay as long as that takes.
@Suite("Disk: lending", .timeLimit(.minutes(10)))
struct DiskLendingTests {
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
    private func sent(_ lent: LentBytes) -> [UInt8] {
        var result = [UInt8](repeating: 0xEE, count: lent.place.count)
        let count = result.withUnsafeMutableBytes {
            pread(lent.descriptor, $0.baseAddress, $0.count, off_t(lent.place.lowerBound))
        }
        return Array(result[..<max(0, count)])
    }

    @Test("what was written or read by this process can be lent, in files and in records")
    func verified() throws {
        let store = try open()
        for (name, body) in [("file", Self.film), ("record", bytes(3000))] {
            let entry = try store.store(body, for: key(name))
            let lent = try #require(entry.lend(5..<2000))
            #expect(lent.range == 5..<2000 && lent.checkFile())
            #expect(body.holds(sent(lent), at: 5))
        }
    }

    @Test("what was not verified yet is not lent; what was, up to the first block that was not")
    func unverified() throws {
        try open().store(Self.film, for: key("film"))
        let store = try open()
        let entry = try #require(try store.entry(for: key("film")))
        #expect(entry.lend(0..<100) == nil)
        #expect(Self.film.holds(entry.read(at: 0, 131_072), at: 0))
        #expect(entry.lend(5..<1 << 20)?.range == 5..<131_072)
        #expect(entry.lend(131_072..<131_073) == nil)
    }

    @Test("what does not exist, and what a guest reads, is not lent")
    func others() throws {
        let owner = try open()
        let entry = try owner.store(Self.film, for: key("film"))
        #expect(entry.lend(4 << 20..<5 << 20) == nil)
        #expect(entry.lend(-5..<5) == nil)
        let reader = try open()
        let guest = try #require(try reader.entry(for: key("film")))
        _ = guest.read(4 << 20)
        #expect(guest.lend(0..<100) == nil)
    }

    @Test("a lent block keeps its bytes when cold blocks are given up, and another one does not")
    func givingUp() throws {
        let store = try open(limit: 5 << 20)
        let entry = try store.store(Self.film, for: key("film"))
        let start: Int64 = 3 << 20
        var lent = entry.lend(start..<start + 100_000)
        // Playing at the beginning: what was lent is the coldest there is.
        #expect(Self.film.holds(entry.read(at: 0, 65_536), at: 0))
        try store.store(bytes(2 << 20, seed: 9), for: key("new"))
        // What is read and what is sent stays, with what comes next; the rest had to go.
        for kept: Range<Int64> in [0..<524_288, start..<start + 524_288] {
            #expect(
                entry.held(at: kept.lowerBound).map { $0.upperBound >= kept.upperBound } == true
            )
        }
        #expect(!entry.isComplete)
        #expect(try Self.film.holds(sent(#require(lent)), at: Int(start)))
        lent = nil
        #expect(entry.state.withLock { $0.lent.isEmpty })
        #expect(try store.usage().bytes == disk.allocatedBytes)
    }

    @Test("bytes given up while they are lent stay in the file, and are a gap all the same")
    func lentMeanwhile() throws {
        let store = try open()
        let entry = try store.store(Self.film, for: key("film"))
        let lent = try #require(entry.lend(65_536..<131_072))
        try store.withLock(of: entry.name) { lock in
            try entry.giveUp(lock, [0..<4]) { #expect($0 == [0..<1, 2..<4]) }
        }
        #expect(entry.held(at: 65_536) == nil)
        #expect(entry.lend(65_536..<131_072) == nil)
        #expect(Self.film.holds(sent(lent), at: 65_536))
    }

    @Test("what is removed or replaced can be sent to its end")
    func removed() throws {
        let store = try open()
        let lent = try #require(try store.store(Self.film, for: key("film")).lend(0..<1 << 20))
        try store.store(bytes(2 << 20, seed: 9), for: key("film"))
        try store.remove(key("film"))
        #expect(Self.film.holds(sent(lent), at: 0) && lent.checkFile())
    }

    @Test("what is lent when its store is closed stays in the file under the next owner")
    func closed() throws {
        let store = try open()
        var entry: DiskEntry? = try store.store(Self.film, for: key("film"))
        let start: Int64 = 3 << 20
        var lent = entry?.lend(start..<start + 100_000)
        store.close()
        let next = try open()
        try next.loadIndex()
        let again = try #require(try next.entry(for: key("film")))
        // Playing at the beginning: what was lent is the coldest there is.
        #expect(Self.film.holds(again.read(at: 0, 65_536), at: 0))
        #expect(next.giveUpColdBlocks(2 << 20) == 0)
        #expect(try Self.film.holds(sent(#require(lent)), at: Int(start)))
        #expect(try again.isComplete && next.verify(repair: false).damaged == 0)
        lent = nil
        entry = nil
        #expect(next.giveUpColdBlocks(1 << 20) > 0)
    }

    @Test("a file that was truncated from outside is noticed")
    func truncated() throws {
        let store = try open()
        let lent = try #require(try store.store(Self.film, for: key("film")).lend(0..<1 << 20))
        for (path, size) in disk.files where size > 1 << 20 {
            #expect(truncate(disk.root.appending(path).string, 100) == 0)
        }
        #expect(!lent.checkFile())
    }
}
