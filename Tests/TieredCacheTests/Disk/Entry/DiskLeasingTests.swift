import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Bytes that the kernel sends from the file: verified ones only, of bodies that are never punched.
@Suite("Disk: leasing", .timeLimit(.minutes(10)))
struct DiskLeasingTests {
    private static let film = bytes(4 << 20, seed: 5)

    private let disk = TestDisk(.posix)

    private func open(
        limit: Int64 = 64 << 20,
        hugeBody: Int64 = 16 << 20
    ) throws -> DiskStore {
        var options = disk.options(limit: limit)
        options.hugeBody = hugeBody
        options.headLength = 131_072
        let warm = WatchedFileSystem(POSIXFileSystem(mayBlockAnyThread: true), isWarm: true) {
            _,
            _ in
        }
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

    /// What of a range is leased.
    private func leased(_ range: Range<Int64>, of entry: DiskEntry) -> Range<Int64>? {
        entry.lease(range) { $0.range }
    }

    @Test("what was written or read by this process can be leased, in files and in records")
    func verified() throws {
        let store = try open()
        for (name, body) in [("file", Self.film), ("record", bytes(3000))] {
            let entry = try store.store(body, for: key(name))
            #expect(leased(5..<2000, of: entry) == 5..<2000)
            #expect(body.holds(try #require(entry.lease(5..<2000, send: sent)), at: 5))
        }
    }

    @Test("what was not verified yet is not leased; what was, up to the first block that was not")
    func unverified() throws {
        try open().store(Self.film, for: key("film"))
        let store = try open()
        let entry = try #require(try store.entry(for: key("film")))
        #expect(leased(0..<100, of: entry) == nil)
        #expect(Self.film.holds(entry.read(at: 0, 131_072), at: 0))
        #expect(leased(5..<1 << 20, of: entry) == 5..<131_072)
        #expect(leased(131_072..<131_073, of: entry) == nil)
    }

    @Test("what does not exist, and what a guest reads, is not leased")
    func others() throws {
        let owner = try open()
        let entry = try owner.store(Self.film, for: key("film"))
        #expect(leased(4 << 20..<5 << 20, of: entry) == nil)
        #expect(leased(-5..<5, of: entry) == nil)
        let reader = try open()
        let guest = try #require(try reader.entry(for: key("film")))
        _ = guest.read(4 << 20)
        #expect(leased(0..<100, of: guest) == nil)
    }

    @Test("what may be punched is not leased, and what is leased is not punched")
    func punching() throws {
        let length: Int64 = 1 << 20
        for (missing, isLeased) in [(0, false), (1, true)] {
            let store = try open(limit: 5 << 20, hugeBody: length)
            let body = Array(Self.film.prefix(Int(length) - missing))
            let entry = try store.store(body, for: key("film"))
            // Its blocks take as much of the disk in both cases.
            #expect(disk.allocatedBytes >= length)
            #expect((leased(0..<100_000, of: entry) != nil) == isLeased)
            #expect(body.holds(entry.read(at: 0, 65_536), at: 0))
            #expect((store.giveUpColdBlocks(length) == 0) == isLeased)
        }
    }

    @Test("what grows may be huge once, and is not leased before its length is known")
    func growing() throws {
        let store = try open()
        let entry = try store.makeEntry(for: key("film"), metadata: [], completeLength: nil)
        try entry.beginWriting(at: 0).write(bytes(131_072))
        #expect(entry.storedRange(at: 0) == 0..<131_072)
        #expect(leased(0..<65_536, of: entry) == nil)
    }

    @Test("what is removed or replaced while it is sent is sent to its end")
    func removed() throws {
        let store = try open()
        let entry = try store.store(Self.film, for: key("film"))
        let seen = try #require(
            try entry.lease(0..<1 << 20) { leased in
                Result {
                    try store.store(bytes(2 << 20, seed: 9), for: key("film"))
                    try store.remove(key("film"))
                    return sent(leased)
                }
            }?.get()
        )
        #expect(Self.film.holds(seen, at: 0) && seen.count == 1 << 20)
    }
}
