import Foundation
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// Linux before 5.6, and sandboxes that forbid `openat2`: the same store, the same caution.
@Suite("Disk: without openat2", .timeLimit(.minutes(10)))
struct DiskOldKernelTests {
    private let disk = TestDisk(.posix)
    private let old = POSIXFileSystem(isOldKernel: true, mayBlockAnyThread: true)

    private func open() throws -> DiskStore {
        try DiskStore(disk.options(), fileSystem: old, timeSource: disk.time)
    }

    @Test("stores, reads, replaces, hands out, verifies and removes")
    func everything() throws {
        var store = try open()
        for (number, size) in [0, 1000, 65_536, 200_000].enumerated() {
            try store.store(bytes(size), for: key("\(number)"))
            try store.store(bytes(size, seed: 2), for: key("\(number)"))
        }
        store.close()
        store = try open()
        for (number, size) in [0, 1000, 65_536, 200_000].enumerated() {
            // Nothing can be opened without perhaps waiting; what is open is read as ever.
            #expect(store.entryWithoutBlocking(for: key("\(number)")).isWaiting)
            let entry = try #require(try store.entry(for: key("\(number)")))
            #expect(firstDifference(entry.read(size), bytes(size, seed: 2)) == nil)
            #expect(entry.readCached(size) == .ready(bytes(size, seed: 2)))
            let path = try #require(try store.bodyPath(for: key("\(number)")))
            #expect(try firstDifference(TestFile.read(path), bytes(size, seed: 2)) == nil)
        }
        store.closeIdle()
        #expect(try store.usage().bytes == disk.allocatedBytes)
        #expect(try store.verify(repair: true).damaged == 0)
        #expect(try store.remove(key("1")))
        try store.removeAll()
        #expect(disk.paths(".record").isEmpty && disk.paths(".body").isEmpty)
    }

    @Test("no component of a name may be a link, or lead out of the directory")
    func links() throws {
        let manager = FileManager.default
        let outside = disk.root.removingLastComponent().appending("outside")
        try manager.createDirectory(atPath: outside.string, withIntermediateDirectories: true)
        #expect(manager.createFile(atPath: outside.appending("file").string, contents: Data([1])))
        let root = try old.openRoot(disk.root, creating: true)
        for (link, target) in [("link", outside.string), ("file", outside.string + "/file")] {
            let path = disk.root.appending(link).string
            try manager.createSymbolicLink(atPath: path, withDestinationPath: target)
        }
        try old.makeDirectory("in", in: root)
        let names = [
            "link", "file", "link/file", "in/../file", "../outside/file", "..", "/etc/passwd",
            "in//file",
        ]
        for name in names {
            for mode in [OpenMode.read, .readWrite, .directory, .openOrCreate] {
                #expect(throws: FileSystemError.self, "\(name) \(mode)") {
                    old.close(try old.open(name, in: root, mode: mode))
                }
            }
        }
        old.close(try old.open("in", in: root, mode: .directory))
        old.close(try old.open("in/new", in: root, mode: .createNew))
        old.close(try old.open("in/new", in: root, mode: .read))
        old.close(root)
        #expect(try manager.contentsOfDirectory(atPath: outside.string) == ["file"])
    }

    @Test("a link in the place of an entry's directory leads nowhere")
    func linkedDirectory() throws {
        let store = try open()
        try store.store(bytes(100), for: key("a"))
        store.close()
        let shard = EntryName(digest: key("a").digest).shard
        let path = disk.root.appending("entries").appending(shard).string
        let moved = disk.root.removingLastComponent().appending("moved").string
        try FileManager.default.moveItem(atPath: path, toPath: moved)
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: moved)
        let again = try open()
        #expect(try again.entry(for: key("a")) == nil)
        #expect(throws: CacheError.self) { try again.store(bytes(100), for: key("a")) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: moved).count == 1)
    }
}

extension NonBlocking {
    fileprivate var isWaiting: Bool {
        if case .wouldBlock = self { true } else { false }
    }
}
