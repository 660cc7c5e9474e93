#if os(Linux)
import SystemPackage
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// A process's view of a disk: each call may let others go first, before it and after it.
///
/// When the process dies every call fails, so that what it left running ends soon.
final class SimulatedFileSystem: FileSystem {
    private struct State {
        var names: [Int32: String] = [:]
        var isDead = false
        /// What is being punched.
        var punches: [(name: String, range: Range<Int64>)] = []
        /// Files to whose pages a socket may refer for as long as its peer likes.
        var sent: Set<String> = []
    }

    let base: InMemoryFileSystem
    private let scheduler: SimulationScheduler
    /// In how many of a hundred calls the page cache has what a call that must not wait needs.
    private let warmth: Int
    private let didCall: @Sendable () -> Void
    private let state = Guarded(State())

    init(
        _ base: InMemoryFileSystem,
        scheduler: SimulationScheduler,
        warmth: Int,
        didCall: @escaping @Sendable () -> Void
    ) {
        self.base = base
        self.scheduler = scheduler
        self.warmth = warmth
        self.didCall = didCall
    }

    /// What the process has open.
    var openFiles: [String] { state.withLock { $0.names.values.sorted() } }

    /// What each of these is allocated.
    var openSizes: [String] {
        let names = state.withLock { $0.names }
        return names.sorted { $0.key < $1.key }.map { number, name in
            do throws(FileSystemError) {
                let size = try base.status(of: OpenFile(number: number)).allocatedBytes
                return "\(name) \(size)"
            } catch {
                return "\(name): \(error.errno)"
            }
        }
    }

    func die() { state.withLock { $0.isDead = true } }

    private func name(of file: OpenFile) -> String {
        state.withLock { $0.names[file.number] } ?? "?"
    }

    private func call<Value>(
        _ call: FileSystemError.Call,
        _ label: String,
        at place: SimulationScheduler.Place? = nil,
        _ body: () throws(FileSystemError) -> Value
    ) throws(FileSystemError) -> Value {
        let isChange = [.create, .write, .resize, .rename, .remove].contains(call)
        scheduler.handOver(label, place ?? (isChange ? .change : .anywhere))
        guard !state.withLock({ $0.isDead }) else { throw FileSystemError(call, errno: .ioError) }
        defer {
            didCall()
            scheduler.handOver("did \(label)")
        }
        do throws(FileSystemError) {
            return try body()
        } catch {
            scheduler.note("fails: \(error.errno)")
            throw error
        }
    }

    private func opened(_ file: OpenFile, _ name: String) -> OpenFile {
        state.withLock { $0.names[file.number] = name }
        return file
    }

    private var isWarm: Bool { scheduler.die.chance(warmth, of: 100) }
}

// MARK: - Names

extension SimulatedFileSystem {
    func openRoot(_ path: FilePath, creating: Bool) throws(FileSystemError) -> OpenFile {
        try call(.open, "open \(path)") { () throws(FileSystemError) in
            opened(try base.openRoot(path, creating: creating), path.string)
        }
    }

    func open(
        _ name: String,
        in directory: OpenFile,
        mode: OpenMode
    ) throws(FileSystemError) -> OpenFile {
        let isNew = mode == .createNew || mode == .openOrCreate
        return try call(isNew ? .create : .open, "open \(name) \(mode)") {
            () throws(FileSystemError) in
            opened(try base.open(name, in: directory, mode: mode), name)
        }
    }

    func openWithoutBlocking(
        _ name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> NonBlocking<OpenFile> {
        guard isWarm else { return .wouldBlock }
        return .ready(try open(name, in: directory, mode: .read))
    }

    func close(_ file: OpenFile) {
        scheduler.handOver("close \(name(of: file))")
        state.withLock { $0.names[file.number] = nil }
        base.close(file)
        didCall()
    }

    func status(
        of name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> FileStatus {
        try call(.inspect, "stat \(name)") { () throws(FileSystemError) in
            try base.status(of: name, in: directory)
        }
    }

    func rename(
        _ name: String,
        in directory: OpenFile,
        to newName: String,
        in newDirectory: OpenFile
    ) throws(FileSystemError) {
        try call(.rename, "rename \(name)") { () throws(FileSystemError) in
            try base.rename(name, in: directory, to: newName, in: newDirectory)
        }
    }

    func unlink(_ name: String, in directory: OpenFile) throws(FileSystemError) {
        try call(.remove, "unlink \(name)") { () throws(FileSystemError) in
            try base.unlink(name, in: directory)
        }
    }

    func makeDirectory(_ name: String, in directory: OpenFile) throws(FileSystemError) {
        try call(.create, "mkdir \(name)") { () throws(FileSystemError) in
            try base.makeDirectory(name, in: directory)
        }
    }

    func list(_ directory: OpenFile) throws(FileSystemError) -> [DirectoryItem] {
        try call(.list, "list \(name(of: directory))") { () throws(FileSystemError) in
            try base.list(directory)
        }
    }
}

// MARK: - Content

extension SimulatedFileSystem {
    func read(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> Int {
        let label = "read \(name(of: file))@\(offset)+\(buffer.count)"
        return try call(.read, label) { () throws(FileSystemError) in
            try base.read(file, into: buffer, at: offset)
        }
    }

    func readWithoutBlocking(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> NonBlocking<Int> {
        guard isWarm else { return .wouldBlock }
        return .ready(try read(file, into: buffer, at: offset))
    }

    func sendable(_ file: OpenFile, range: Range<Int64>) -> Int32? {
        guard isWarm else { return nil }
        let name = name(of: file)
        state.withLock { _ = $0.sent.insert(name) }
        return file.number
    }

    func write(
        _ first: UnsafeRawBufferPointer,
        followedBy second: UnsafeRawBufferPointer,
        to file: OpenFile,
        at offset: Int64
    ) throws(FileSystemError) {
        let count = Int64(first.count + second.count)
        let label = "write \(name(of: file))@\(offset)+\(count)"
        checkPunches(of: name(of: file), offset..<offset + count)
        try call(.write, label) { () throws(FileSystemError) in
            checkPunches(of: name(of: file), offset..<offset + count)
            try base.write(first, followedBy: second, to: file, at: offset)
        }
    }

    /// What is written while it is being punched may be gone with that.
    private func checkPunches(of name: String, _ range: Range<Int64>) {
        let isPunched = state.withLock { state in
            state.punches.contains { $0.name == name && $0.range.overlaps(range) }
        }
        if isPunched { scheduler.fail("\(name) \(range) is written while it is being punched") }
    }

    func truncate(_ file: OpenFile, to length: Int64) throws(FileSystemError) {
        let label = "truncate \(name(of: file)) to \(length)"
        try call(.resize, label) { () throws(FileSystemError) in
            try base.truncate(file, to: length)
        }
    }

    func punch(_ file: OpenFile, range: Range<Int64>) throws(FileSystemError) {
        let name = name(of: file)
        let label = "punch \(name)@\(range.lowerBound)+\(range.count)"
        let isSent = state.withLock { state in
            state.punches.append((name, range))
            return state.sent.contains(name)
        }
        if isSent { scheduler.fail("\(name) is punched, and a socket may refer to its pages") }
        defer { state.withLock { $0.punches.removeAll { $0.name == name && $0.range == range } } }
        try call(.resize, label, at: .punch) { () throws(FileSystemError) in
            try base.punch(file, range: range)
        }
    }

    func status(of file: OpenFile) throws(FileSystemError) -> FileStatus {
        try call(.inspect, "fstat \(name(of: file))") { () throws(FileSystemError) in
            try base.status(of: file)
        }
    }

    func sync(_ file: OpenFile, dataOnly: Bool) throws(FileSystemError) {
        try call(.sync, "sync \(name(of: file))") { () throws(FileSystemError) in
            try base.sync(file, dataOnly: dataOnly)
        }
    }

    func volume(of file: OpenFile) throws(FileSystemError) -> VolumeStatus {
        try call(.inspect, "statfs") { () throws(FileSystemError) in try base.volume(of: file) }
    }
}

// MARK: - Locks

extension SimulatedFileSystem {
    func lock(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try call(.lock, "lock \(name(of: file))") { () throws(FileSystemError) in
            try base.lock(file)
        }
    }

    func share(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try call(.lock, "share \(name(of: file))") { () throws(FileSystemError) in
            try base.share(file)
        }
    }

    func isLocked(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try call(.lock, "asks for the lock of \(name(of: file))") { () throws(FileSystemError) in
            try base.isLocked(file)
        }
    }

    func unlock(_ file: OpenFile) {
        scheduler.handOver("unlock \(name(of: file))")
        base.unlock(file)
    }
}

/// Lets the simulation choose the thread that gets a lock, and sees when none ever will.
struct SimulatedLockWaiter: LockWaiter {
    let scheduler: SimulationScheduler

    func wait(until attempt: () -> Bool) { scheduler.waitForLock(until: attempt) }
}
#endif
