import HTTPCaching
import SystemPackage
import TieredCache

/// A file's content as pages; those never written are holes.
struct Pages: Sendable {
    static let size = 4096

    private(set) var pages: [Int64: [UInt8]] = [:]
    private(set) var length: Int64 = 0

    init() {}

    init(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { write($0, at: 0) }
    }

    var allocatedBytes: Int64 { Int64(pages.count * Self.size) }

    var bytes: [UInt8] {
        var result = [UInt8](repeating: 0, count: Int(length))
        _ = result.withUnsafeMutableBytes { read(into: $0, at: 0) }
        return result
    }

    /// How many pages a write would add.
    func newPages(_ count: Int, at offset: Int64) -> Int {
        guard count > 0 else { return 0 }
        let last = (offset + Int64(count) - 1) / Int64(Self.size)
        return (offset / Int64(Self.size)...last).count { pages[$0] == nil }
    }

    mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
        var done = 0
        while done < bytes.count {
            let position = offset + Int64(done)
            let start = Int(position % Int64(Self.size))
            let count = min(Self.size - start, bytes.count - done)
            let page = position / Int64(Self.size)
            pages[page, default: [UInt8](repeating: 0, count: Self.size)].replaceSubrange(
                start..<(start + count),
                with: bytes[done..<(done + count)]
            )
            done += count
        }
        length = max(length, offset + Int64(bytes.count))
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
        guard offset >= 0, offset < length else { return 0 }
        let count = Int(min(Int64(buffer.count), length - offset))
        var done = 0
        while done < count {
            let position = offset + Int64(done)
            let start = Int(position % Int64(Self.size))
            let part = min(Self.size - start, count - done)
            let target = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<(done + part)])
            if let page = pages[position / Int64(Self.size)] {
                target.copyBytes(from: page[start..<(start + part)])
            } else {
                target.initializeMemory(as: UInt8.self, repeating: 0)
            }
            done += part
        }
        return count
    }

    mutating func truncate(to newLength: Int64) {
        if newLength < length {
            pages = pages.filter { $0.key * Int64(Self.size) < newLength }
            let start = Int(newLength % Int64(Self.size))
            if start > 0, var page = pages[newLength / Int64(Self.size)] {
                for index in start..<Self.size {
                    page[index] = 0
                }
                pages[newLength / Int64(Self.size)] = page
            }
        }
        length = newLength
    }

    mutating func punch(_ range: Range<Int64>) {
        let size = Int64(Self.size)
        for page in pages.keys {
            let extent = (page * size)..<((page + 1) * size)
            let hole = range.clamped(to: extent)
            if hole == extent {
                pages[page] = nil
            } else if !hole.isEmpty {
                let count = Int(hole.upperBound - hole.lowerBound)
                pages[page]?.replaceSubrange(
                    Int(
                        hole.lowerBound - extent.lowerBound
                    )..<Int(hole.upperBound - extent.lowerBound),
                    with: repeatElement(0, count: count)
                )
            }
        }
    }

    /// What a power cut leaves of content that was synced as `synced`.
    func torn(_ synced: Pages, keep: () -> Bool) -> Pages {
        var result = self
        for page in Set(pages.keys).union(synced.pages.keys) where pages[page] != synced.pages[page]
        {
            if !keep() { result.pages[page] = synced.pages[page] }
        }
        if length != synced.length, !keep() { result.truncate(to: synced.length) }
        return result
    }
}

extension InMemoryFileSystem {
    enum Node: Hashable, Sendable {
        case file(Int)
        case directory(Int)
    }

    struct File: Sendable {
        var content = Pages()
        var synced = Pages()
        var modified: Int64
        var opens = 0
    }

    struct Directory: Sendable {
        var names: [String: Node] = [:]
        var synced: [String: Node] = [:]
    }

    struct State: Sendable {
        var capacity: Int64
        let time: any TimeSource
        var files: [Int: File] = [:]
        var directories: [Int: Directory] = [0: Directory()]
        var handles: [Int32: Node] = [:]
        /// Which open file holds the lock of a file.
        var locks: [Int: Int32] = [:]
        var nextNode = 1
        var nextHandle: Int32 = 100
        var failures: [Failure] = []
        var calls: [FileSystemCall] = []
        var changeCount = 0
        var changesLeft: Int?

        init(capacity: Int64, time: any TimeSource) {
            self.capacity = capacity
            self.time = time
        }

        var allocatedBytes: Int64 {
            files.values.reduce(0) { $0 + $1.content.allocatedBytes }
        }
    }
}

extension InMemoryFileSystem.State {
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

    /// The directory that holds a path's last component, and that component.
    func parent(_ path: String, from directory: Int) -> (Int, String)? {
        let names = path.split(separator: "/")
        guard let last = names.last else { return nil }
        let rest = names.dropLast().joined(separator: "/")
        guard case .directory(let number) = walk(rest, from: directory) else { return nil }
        return (number, String(last))
    }

    mutating func makeDirectories(_ path: String) -> Int {
        var number = 0
        for name in path.split(separator: "/") {
            if case .directory(let next) = directories[number]?.names[String(name)] {
                number = next
                continue
            }
            let next = newNode()
            directories[next] = InMemoryFileSystem.Directory()
            directories[number]?.names[String(name)] = .directory(next)
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
        files[number] = InMemoryFileSystem.File(content: Pages(content), modified: now)
        directories[directory]?.names[String(name)] = .file(number)
    }

    mutating func delete(_ path: String) -> Bool {
        guard let (directory, name) = parent(path, from: 0),
            case .file(let number) = directories[directory]?.names.removeValue(forKey: name)
        else { return false }
        forgetIfUnused(number)
        return true
    }

    var now: Int64 { time.wallTime().nanoseconds }

    /// Frees a file that has neither a name nor anybody who has it open.
    mutating func forgetIfUnused(_ number: Int) {
        guard files[number]?.opens == 0 else { return }
        let isNamed = directories.values.contains { $0.names.values.contains(.file(number)) }
        if !isNamed { files[number] = nil }
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

    /// Writes a call down, and decides whether it happens.
    mutating func enter(
        _ call: FileSystemError.Call,
        _ path: String,
        isChange: Bool = false
    ) throws(FileSystemError) {
        calls.append(FileSystemCall(call: call, path: path, isChange: isChange))
        if let left = changesLeft, left <= 0 { throw FileSystemError(call, .ioError) }
        for index in failures.indices {
            guard failures[index].call == nil || failures[index].call == call else { continue }
            if failures[index].skipping > 0 {
                failures[index].skipping -= 1
                continue
            }
            guard failures[index].times > 0 else { continue }
            failures[index].times -= 1
            throw FileSystemError(call, failures[index].errno)
        }
        guard isChange else { return }
        changeCount += 1
        changesLeft = changesLeft.map { $0 - 1 }
    }
}
