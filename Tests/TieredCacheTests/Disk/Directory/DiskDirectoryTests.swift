import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Opening a directory: what is refused, what is left alone, what others may see of it.
@Suite("Disk: directory", .timeLimit(.minutes(10)))
struct DiskDirectoryTests {
    @Test(
        "a newer or unreadable FORMAT is refused and nothing is touched",
        arguments: DiskKind.allCases,
        [
            "tieredcache format 3\n", "tieredcache format 0\n", "", "garbage", "\u{0}\u{1}",
            "tieredcache format 99999999999999999999\n", "tieredcache format 1 2\n",
        ]
    )
    func refused(kind: DiskKind, format: String) throws {
        let disk = TestDisk(kind)
        try disk.write(Array(format.utf8), "FORMAT")
        try disk.write(
            [1, 2, 3],
            "staging/0123456789abcdef0123456789abcdef.0000000000000001.record"
        )
        let before = disk.files
        let error = #expect(throws: CacheError.self) { try disk.open() }
        #expect(error?.code == .formatTooNew)
        #expect(disk.files == before)
        #expect(try disk.content("FORMAT") == Array(format.utf8))
    }

    @Test("directories are 0700 and files 0600, whatever the umask")
    func modes() throws {
        let disk = TestDisk(.posix)
        let store = try disk.open()
        try store.store(bytes(1000), for: key("a"))
        try store.store(bytes(100_000), for: key("b"))
        for path in ["."] + (FileManager.default.subpaths(atPath: disk.root.string) ?? []) {
            var status = stat()
            try #require(lstat(disk.root.appending(path).string, &status) == 0)
            let isDirectory = status.st_mode & S_IFMT == S_IFDIR
            #expect(status.st_mode & 0o777 == (isDirectory ? 0o700 : 0o600), "\(path)")
        }
    }

    #if os(Linux)
    @Test("the directories of entries lie apart, where the file system has a flag for that")
    func apart() throws {
        let disk = TestDisk(.posix)
        _ = try disk.open()
        let entries = open(disk.root.appending("entries").string, O_RDONLY | O_DIRECTORY)
        try #require(entries >= 0)
        defer { close(entries) }
        // FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_TOPDIR_FL of <linux/fs.h>.
        let (get, set, topDirectory): (UInt, UInt, Int32) = (0x8008_6601, 0x4008_6602, 0x2_0000)
        var flags: Int32 = 0
        guard ioctl(entries, get, &flags) == 0 else { return }
        let isSet = flags & topDirectory != 0
        flags |= topDirectory
        let isKnown = ioctl(entries, set, &flags) == 0
        #expect(isSet || !isKnown)
    }
    #endif

    @Test("a closed store gives the directory up, though its entries are still read and filled")
    func closing() throws {
        let disk = TestDisk(.memory)
        let first = try disk.open()
        let read = try first.store(bytes(200_000), for: key("a"))
        let filled = try first.makeEntry(for: key("b"), metadata: [], completeLength: 200_000)
        let writer = try filled.beginWriting(at: 0)
        try writer.write(bytes(100_000))
        first.close()
        let second = try disk.open()
        #expect(second.access.canWrite)
        #expect(firstDifference(read.read(200_000), bytes(200_000)) == nil)
        func expectShutDown(_ body: () throws(CacheError) -> Void) {
            let error = #expect(throws: CacheError.self) { try body() }
            #expect(error?.code == .shutDown)
        }
        expectShutDown { () throws(CacheError) in try writer.write(bytes(100_000)) }
        expectShutDown { () throws(CacheError) in try read.setPinned(true) }
        expectShutDown { () throws(CacheError) in try read.updateMetadata([1]) }
        expectShutDown { () throws(CacheError) in _ = try first.store([1], for: key("c")) }
        first.close()
        try second.store(bytes(10), for: key("c"))
        #expect(try second.verify(repair: false).damaged == 0)
    }

    @Test("a second store is a guest: it reads, and every write is refused by name of the owner")
    func guest() throws {
        let disk = TestDisk(.posix)
        let owner = try disk.open()
        try owner.store(bytes(1000), for: key("a"))
        let before = disk.files
        let guest = try disk.open()
        guard case .guest(let named) = guest.access else {
            Issue.record("not a guest")
            return
        }
        #expect(named.process == getpid())
        let entry = try #require(try guest.entry(for: key("a")))
        #expect(firstDifference(entry.read(1000), bytes(1000)) == nil)
        expectNotOwner { () throws(CacheError) in try guest.store([1], for: key("b")) }
        expectNotOwner { () throws(CacheError) in try guest.remove(key("a")) }
        expectNotOwner { () throws(CacheError) in try guest.removeAll() }
        expectNotOwner { () throws(CacheError) in try guest.trim(to: 0) }
        expectNotOwner { () throws(CacheError) in try guest.verify(repair: true) }
        expectNotOwner { () throws(CacheError) in try guest.bodyPath(for: key("a")) }
        expectNotOwner { () throws(CacheError) in try entry.beginWriting(at: 0) }
        expectNotOwner { () throws(CacheError) in try entry.setPinned(true) }
        expectNotOwner { () throws(CacheError) in try entry.updateMetadata([]) }
        #expect(disk.files == before)
    }

    private func expectNotOwner<Result>(_ body: () throws(CacheError) -> Result) {
        do throws(CacheError) {
            _ = try body()
            Issue.record("a guest wrote")
        } catch {
            #expect(error.code == .notOwner)
            #expect(error.message.contains("\(getpid())"))
        }
    }

    @Test("symbolic links inside the directory are not followed", arguments: [1000, 100_000])
    func links(size: Int) throws {
        let disk = TestDisk(.posix)
        try disk.open().store(bytes(size), for: key("a"))
        let outside = disk.root.removingLastComponent().appending("outside")
        for path in disk.paths(".record") {
            let record = disk.root.appending(path).string
            try FileManager.default.moveItem(atPath: record, toPath: outside.string)
            try FileManager.default.createSymbolicLink(
                atPath: record,
                withDestinationPath: outside.string
            )
        }
        let content = try TestFile.read(outside)
        let store = try disk.open()
        #expect(store.entryWithoutBlocking(for: key("a")).isMiss)
        #expect(try store.entry(for: key("a")) == nil)
        try store.store(bytes(size, seed: 2), for: key("a"))
        #expect(
            try firstDifference(store.entry(for: key("a"))?.read(size), bytes(size, seed: 2)) == nil
        )
        #expect(try firstDifference(TestFile.read(outside), content) == nil)
    }

    @Test("a directory that cannot be written is read, and says why it is not written")
    func readOnly() throws {
        let disk = TestDisk(.memory)
        try disk.open().store(bytes(1000), for: key("a"))
        disk.memory.fail(.lock, with: .readOnlyFileSystem)
        let store = try disk.open()
        #expect(!store.access.canWrite)
        #expect(try firstDifference(store.entry(for: key("a"))?.read(1000), bytes(1000)) == nil)
        let error = #expect(throws: CacheError.self) { try store.store([1], for: key("b")) }
        #expect(error?.code == .localStorage)
        #expect(error?.message.contains("writable volume") == true)
    }

    @Test("a share of the volume lowers the limit and never raises it")
    func share() throws {
        let memory = InMemoryFileSystem(capacity: 1 << 30)
        var options = DiskStore.Options(root: "/cache", limit: 2 << 30)
        options.maximumVolumePercentage = 10
        #expect(try DiskStore(options, fileSystem: memory).usage().limit == (1 << 30) / 100 * 10)
        options.root = "/other"
        options.limit = 1 << 20
        #expect(try DiskStore(options, fileSystem: memory).usage().limit == 1 << 20)
    }

    @Test("a cancelled load of the index leaves it to the first write")
    func cancelled() throws {
        let disk = TestDisk(.memory)
        try disk.open().store(bytes(10), for: key("b"))
        let store = try disk.open()
        let error = #expect(throws: CacheError.self) { try store.loadIndex { true } }
        #expect(error?.code == .cancelled)
        try store.store(bytes(10), for: key("a"))
        #expect(try store.usage().entries == 2)
    }
}
