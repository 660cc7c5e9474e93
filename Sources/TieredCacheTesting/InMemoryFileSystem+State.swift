import HTTPCaching
import SystemPackage
import TieredCache

extension InMemoryFileSystem {
    enum Node: Hashable, Sendable {
        case file(Int)
        case directory(Int)
    }

    struct File: Sendable {
        var content = Pages()
        var unsynced = UnsyncedPages()
        var modified: Int64
        /// The allocation that its status showed when it was last settled.
        var shownBytes: Int64 = 512
        var opens = 0
        /// Whether it has no name and is not open; kept because a power cut may restore a name.
        var isGone = false
    }

    struct Directory: Sendable {
        var names: [String: Node] = [:]
        var unsynced = UnsyncedNames()
        /// Whether it no longer has a name.
        var isGone = false
    }

    struct State: Sendable {
        var capacity: Int64
        let time: any TimeSource
        var files: [Int: File] = [:]
        var directories: [Int: Directory] = [0: Directory()]
        var handles: [Int32: Node] = [:]
        /// The open file with the exclusive lock of a file.
        var locks: [Int: Int32] = [:]
        /// The open files with a shared lock of a file.
        var shares: [Int: Set<Int32>] = [:]
        var nextNode = 1
        var nextHandle: Int32 = 100
        var failures: [Failure] = []
        var calls: [FileSystemCall] = []
        var changeCount = 0
        var changesLeft: Int?
        /// Whether all versions of unsynced state are kept.
        let remembersUnsynced: Bool
        /// The disk before each change; nil while they are not recorded.
        var crashPoints: [State]?
        var isAllocationDelayed = false
        var aheadBytes: Int64 = 0
        private(set) var allocatedBytes: Int64 = 0
        private(set) var peakAllocatedBytes: Int64 = 0

        init(capacity: Int64, time: any TimeSource, remembersUnsynced: Bool) {
            self.capacity = capacity
            self.time = time
            self.remembersUnsynced = remembersUnsynced
        }

        mutating func charge(_ delta: Int64) {
            allocatedBytes += delta
            peakAllocatedBytes = max(peakAllocatedBytes, allocatedBytes)
        }

        mutating func forgetPeak() {
            peakAllocatedBytes = allocatedBytes
        }

        /// Recounts the allocation, after files were changed without a call.
        mutating func recount() {
            allocatedBytes = files.values.reduce(0) { $0 + $1.content.allocatedBytes }
            peakAllocatedBytes = allocatedBytes
        }
    }
}

extension InMemoryFileSystem.State {
    /// Changes a file's content, its modification date and the allocation.
    mutating func change(_ number: Int, with change: (inout Pages) -> Void) {
        // Removed from the dictionary, so that changing a page does not copy it.
        guard var file = files.updateValue(.init(modified: now), forKey: number) else {
            files[number] = nil
            return
        }
        let before = file.content.allocatedBytes
        if remembersUnsynced {
            let old = file.content
            change(&file.content)
            file.unsynced.didChange(old, to: file.content)
        } else {
            change(&file.content)
        }
        file.modified = now
        charge(file.content.allocatedBytes - before)
        files[number] = file
    }

    mutating func settle() {
        files = files.mapValues { file in
            var file = file
            file.shownBytes = file.content.allocatedBytes
            return file
        }
    }

    /// The allocation that the status of a file shows.
    func shownBytes(_ number: Int) -> Int64 {
        guard let file = files[number] else { return 0 }
        let shown = isAllocationDelayed ? file.shownBytes : file.content.allocatedBytes
        return file.opens > 0 ? shown + aheadBytes : shown
    }

    /// Sets the node of a name; `nil` removes the name.
    mutating func setName(_ name: String, in directory: Int, to node: InMemoryFileSystem.Node?) {
        let old = directories[directory]?.names[name]
        if remembersUnsynced { directories[directory]?.unsynced.didChange(name, from: old) }
        directories[directory]?.names[name] = node
        if case .file(let number) = old { forgetIfUnused(number) }
    }

    /// Walks a path from the root of the disk.
    func find(_ path: String) -> InMemoryFileSystem.Node? {
        walk(path, from: 0)
    }

    func walk(_ path: String, from directory: Int) -> InMemoryFileSystem.Node? {
        var node = InMemoryFileSystem.Node.directory(directory)
        for name in path.split(separator: "/") where name != "." {
            guard case .directory(let number) = node,
                let next = directories[number]?.names[String(name)]
            else { return nil }
            node = next
        }
        return node
    }

    /// The directory that contains the last component of a path, and that component.
    func parent(_ path: String, from directory: Int) -> (Int, String)? {
        let names = path.split(separator: "/")
        guard let last = names.last else { return nil }
        let rest = names.dropLast().joined(separator: "/")
        guard case .directory(let number) = walk(rest, from: directory),
            directories[number]?.isGone == false
        else { return nil }
        return (number, String(last))
    }

    mutating func makeDirectories(_ path: String, isSynced: Bool = false) -> Int {
        var number = 0
        for name in path.split(separator: "/") {
            if case .directory(let next) = directories[number]?.names[String(name)] {
                number = next
                continue
            }
            let next = newNode()
            directories[next] = InMemoryFileSystem.Directory()
            setName(String(name), in: number, to: .directory(next))
            if isSynced { directories[number]?.unsynced.didSync(String(name)) }
            number = next
        }
        return number
    }

    mutating func newNode() -> Int {
        defer { nextNode += 1 }
        return nextNode
    }

    mutating func newHandle(_ node: InMemoryFileSystem.Node) -> OpenFile {
        defer { nextHandle += 1 }
        handles[nextHandle] = node
        if case .file(let number) = node { files[number]?.opens += 1 }
        return OpenFile(number: nextHandle)
    }

    mutating func put(_ content: [UInt8], at path: String) {
        let directory = makeDirectories(
            path.split(separator: "/").dropLast().joined(separator: "/")
        )
        guard let name = path.split(separator: "/").last else { return }
        let number = newNode()
        files[number] = InMemoryFileSystem.File(modified: now)
        setName(String(name), in: directory, to: .file(number))
        change(number) { $0 = Pages(content) }
    }

    mutating func delete(_ path: String) -> Bool {
        guard let (directory, name) = parent(path, from: 0),
            case .file = directories[directory]?.names[name]
        else { return false }
        setName(name, in: directory, to: nil)
        return true
    }

    mutating func deleteDirectory(_ path: String) -> Bool {
        guard let (parent, name) = parent(path, from: 0),
            case .directory(let number) = directories[parent]?.names[name]
        else { return false }
        empty(number)
        setName(name, in: parent, to: nil)
        return true
    }

    private mutating func empty(_ number: Int) {
        for (name, node) in directories[number]?.names ?? [:] {
            if case .directory(let inner) = node { empty(inner) }
            setName(name, in: number, to: nil)
        }
        directories[number]?.isGone = true
    }

    var now: Int64 { time.wallTime().nanoseconds }

    /// Frees a file that has no name and is not open.
    mutating func forgetIfUnused(_ number: Int) {
        guard let file = files[number], file.opens == 0, !file.isGone else { return }
        let isNamed = directories.values.contains { $0.names.values.contains(.file(number)) }
        guard !isNamed else { return }
        charge(-file.content.allocatedBytes)
        if remembersUnsynced {
            files[number]?.isGone = true
        } else {
            files[number] = nil
        }
    }

    func allFiles() -> [String: Int64] {
        var result: [String: Int64] = [:]
        var rest: [(Int, String)] = [(0, "")]
        while let (directory, path) = rest.popLast() {
            for (name, node) in directories[directory]?.names ?? [:] {
                switch node {
                case .directory(let number): rest.append((number, path + "/" + name))
                case .file(let number):
                    result[path + "/" + name] = files[number]?.content.allocatedBytes ?? 0
                }
            }
        }
        return result
    }

    /// Records a call, and throws if it is to fail.
    mutating func enter(
        _ call: FileSystemError.Call,
        at path: String,
        isChange: Bool = false
    ) throws(FileSystemError) {
        calls.append(FileSystemCall(call: call, path: path, isChange: isChange))
        if let left = changesLeft, left <= 0 { throw FileSystemError(call, errno: .ioError) }
        for index in failures.indices {
            guard failures[index].call == nil || failures[index].call == call else { continue }
            if failures[index].skipping > 0 {
                failures[index].skipping -= 1
                continue
            }
            guard failures[index].times > 0 else { continue }
            failures[index].times -= 1
            throw FileSystemError(call, errno: failures[index].errno)
        }
        guard isChange else { return }
        if crashPoints != nil { recordCrashPoint() }
        changeCount += 1
        changesLeft = changesLeft.map { $0 - 1 }
    }
}
