import SystemPackage
import Testing
import TieredCache
import TieredCacheTesting

/// The disk in memory behaves as a disk does, up to the power cut.
@Suite("InMemoryFileSystem", .timeLimit(.minutes(10)))
struct InMemoryFileSystemTests {
    private let disk = InMemoryFileSystem(remembersUnsynced: true)

    private func root() throws -> OpenFile { try disk.openRoot("/cache", creating: true) }

    private func read(_ file: OpenFile, _ count: Int, at offset: Int64 = 0) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0xEE, count: count)
        let read = try bytes.withUnsafeMutableBytes { try disk.read(file, into: $0, at: offset) }
        return Array(bytes[..<read])
    }

    private func write(_ bytes: [UInt8], to file: OpenFile, at offset: Int64 = 0) throws {
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        try bytes.withUnsafeBytes { try disk.write($0, followedBy: nothing, to: file, at: offset) }
    }

    @Test("what is written is read, holes are zeros and cost nothing")
    func content() throws {
        let file = try disk.open("a", in: root(), mode: .createNew)
        try write([1, 2, 3], to: file, at: 9000)
        #expect(disk.allocatedBytes == 4096)
        #expect(try read(file, 5, at: 8998) == [0, 0, 1, 2, 3])
        #expect(try read(file, 5, at: 9001) == [2, 3])
        #expect(try read(file, 5, at: 9003).isEmpty)
        let status = try disk.status(of: file)
        #expect(status.size == 9003 && status.allocatedBytes == 4096 && status.kind == .file)
        try write([UInt8](repeating: 7, count: 8192), to: file)
        #expect(disk.allocatedBytes == 3 * 4096)
        try disk.punch(file, range: 100..<8192)
        #expect(disk.allocatedBytes == 2 * 4096)
        #expect(try read(file, 4, at: 98) == [7, 7, 0, 0])
        try disk.truncate(file, to: 50)
        #expect(disk.allocatedBytes == 4096)
        #expect(disk.peakAllocatedBytes == 3 * 4096)
    }

    @Test("names: what is taken, missing, of another kind, or open without one")
    func names() throws {
        let root = try root()
        let file = try disk.open("a", in: root, mode: .createNew)
        #expect(throws: FileSystemError(.create, errno: .fileExists)) {
            try disk.open("a", in: root, mode: .createNew)
        }
        #expect(throws: FileSystemError(.open, errno: .noSuchFileOrDirectory)) {
            try disk.open("b", in: root, mode: .read)
        }
        #expect(throws: FileSystemError(.open, errno: .notDirectory)) {
            try disk.open("a", in: root, mode: .directory)
        }
        try write([1], to: file)
        try disk.rename("a", in: root, to: "b", in: root)
        #expect(disk.files.keys.sorted() == ["/cache/b"])
        try disk.unlink("b", in: root)
        #expect(disk.files.isEmpty)
        #expect(try read(file, 1) == [1])
        #expect(disk.allocatedBytes == 4096)
        disk.close(file)
        #expect(disk.allocatedBytes == 0)
        #expect(throws: FileSystemError(.read, errno: .badFileDescriptor)) { try read(file, 1) }
    }

    @Test("a disk that is full takes nothing more, and says so")
    func full() throws {
        disk.setCapacity(8192)
        let file = try disk.open("a", in: root(), mode: .createNew)
        try write([1], to: file, at: 5000)
        #expect(try disk.volume(of: file) == VolumeStatus(available: 4096, total: 8192))
        #expect(throws: FileSystemError(.write, errno: .noSpace)) {
            try write([UInt8](repeating: 1, count: 8000), to: file, at: 8192 - 1)
        }
        try write([2], to: file, at: 5000)
        #expect(disk.peakAllocatedBytes <= 8192)
    }

    @Test("a lock belongs to one open file, until it is closed")
    func lock() throws {
        let root = try root()
        let first = try disk.open("LOCK", in: root, mode: .openOrCreate)
        let second = try disk.open("LOCK", in: root, mode: .openOrCreate)
        #expect(try disk.lock(first))
        #expect(try disk.lock(first))
        #expect(try !disk.lock(second))
        disk.close(first)
        #expect(try disk.lock(second))
    }

    @Test("failures come where they were asked for, and as often")
    func failures() throws {
        let file = try disk.open("a", in: root(), mode: .createNew)
        disk.fail(.write, with: .ioError, times: 2, skipping: 1)
        try write([1], to: file)
        for _ in 0..<2 {
            #expect(throws: FileSystemError(.write, errno: .ioError)) { try write([2], to: file) }
        }
        try write([3], to: file)
        #expect(try read(file, 1) == [3])
        disk.crash(afterChanges: 1)
        try write([4], to: file)
        #expect(throws: FileSystemError(.write, errno: .ioError)) { try write([5], to: file) }
    }

    @Test("a power cut may leave every version since the last sync, and nothing else")
    func versions() throws {
        let root = try root()
        let file = try disk.open("a", in: root, mode: .createNew)
        try write([1], to: file)
        try disk.sync(file, dataOnly: false)
        try disk.sync(root, dataOnly: false)
        disk.syncEverything()
        try write([2], to: file)
        try write([3], to: file)
        let (disks, isExhaustive) = disk.afterCrashes(atMost: 100, seed: 1)
        #expect(isExhaustive)
        #expect(disks.compactMap { $0.content(of: "/cache/a") } == [[1], [2], [3]])
        #expect(disk.afterCrash(.unsyncedLost).content(of: "/cache/a") == [1])
        #expect(disk.afterCrash(.everythingKept).content(of: "/cache/a") == [3])
    }

    @Test("a power cut may bring back what was replaced, renamed or removed")
    func lostNames() throws {
        let root = try root()
        for (name, byte) in [("old", 1), ("gone", 2)] as [(String, UInt8)] {
            let file = try disk.open(name, in: root, mode: .createNew)
            try write([byte], to: file)
            disk.close(file)
        }
        disk.syncEverything()
        let new = try disk.open("staged", in: root, mode: .createNew)
        try write([3], to: new)
        try disk.sync(new, dataOnly: true)
        disk.close(new)
        try disk.rename("staged", in: root, to: "old", in: root)
        try disk.unlink("gone", in: root)
        let lost = disk.afterCrash(.unsyncedLost)
        #expect(lost.files.keys.sorted() == ["/cache/gone", "/cache/old"])
        #expect(lost.content(of: "/cache/old") == [1])
        #expect(lost.content(of: "/cache/gone") == [2])
        #expect(lost.allocatedBytes == 8192)
        #expect(disk.allocatedBytes == 4096)
        let (disks, isExhaustive) = disk.afterCrashes(atMost: 100, seed: 1)
        #expect(isExhaustive)
        // Two states of each of the names "old", "gone", three of "staged".
        #expect(disks.count == 12)
        #expect(disks.allSatisfy { $0.content(of: "/cache/old") != nil })
    }

    @Test("pages and length of one write are torn independently")
    func torn() throws {
        let file = try disk.open("a", in: root(), mode: .createNew)
        disk.syncEverything()
        try write([UInt8](repeating: 1, count: 8192), to: file)
        let (disks, isExhaustive) = disk.afterCrashes(atMost: 100, seed: 1)
        #expect(isExhaustive)
        #expect(disks.count == 8)
        let contents = Set(disks.compactMap { $0.content(of: "/cache/a") })
        #expect(contents.count == 5)
        #expect(contents.contains([]))
        for disk in disks {
            #expect(disk.allocatedBytes <= 8192)
        }
    }

    @Test("the disk before each change, and at the end")
    func crashPoints() throws {
        let root = try root()
        let points = try disk.crashPoints {
            let file = try disk.open("a", in: root, mode: .createNew)
            try write([1], to: file)
            _ = try disk.status(of: file)
            try write([2], to: file)
        }
        #expect(points.map { $0.content(of: "/cache/a") } == [nil, [], [1], [2]])
        let more = points[1].afterCrash(.everythingKept)
        #expect(more.content(of: "/cache/a") == [])
        #expect(more.openCount == 0)
    }
}
