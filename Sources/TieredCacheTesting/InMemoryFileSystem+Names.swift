import SystemPackage
package import TieredCache

extension InMemoryFileSystem {
    /// Renames a file.
    package func rename(
        _ name: String,
        in directory: OpenFile,
        to newName: String,
        in newDirectory: OpenFile
    ) throws(FileSystemError) {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.rename, at: newName, isChange: true)
            let from = try state.directory(directory, for: .rename)
            let to = try state.directory(newDirectory, for: .rename)
            guard let old = state.parent(name, from: from),
                let new = state.parent(newName, from: to),
                let node = state.directories[old.0]?.names[old.1]
            else { throw FileSystemError(.rename, errno: .noSuchFileOrDirectory) }
            state.setName(new.1, in: new.0, to: node)
            state.setName(old.1, in: old.0, to: nil)
        }
    }

    /// Removes a name.
    package func unlink(_ name: String, in directory: OpenFile) throws(FileSystemError) {
        try state.withLock { state throws(FileSystemError) in
            let start = try state.directory(directory, for: .remove)
            try state.enter(.remove, at: name, isChange: state.walk(name, from: start) != nil)
            guard let parent = state.parent(name, from: start),
                let node = state.directories[parent.0]?.names[parent.1]
            else { throw FileSystemError(.remove, errno: .noSuchFileOrDirectory) }
            guard case .file = node else {
                throw FileSystemError(.remove, errno: .isDirectory)
            }
            state.setName(parent.1, in: parent.0, to: nil)
        }
    }

    /// Makes a directory.
    package func makeDirectory(_ name: String, in directory: OpenFile) throws(FileSystemError) {
        try state.withLock { state throws(FileSystemError) in
            let start = try state.directory(directory, for: .create)
            try state.enter(.create, at: name, isChange: state.walk(name, from: start) == nil)
            guard let parent = state.parent(name, from: start) else {
                throw FileSystemError(.create, errno: .noSuchFileOrDirectory)
            }
            guard state.directories[parent.0]?.names[parent.1] == nil else {
                throw FileSystemError(.create, errno: .fileExists)
            }
            let number = state.newNode()
            state.directories[number] = Directory()
            state.setName(parent.1, in: parent.0, to: .directory(number))
        }
    }

    /// Lists a directory, sorted by name.
    package func list(_ directory: OpenFile) throws(FileSystemError) -> [DirectoryItem] {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.list, at: "")
            let number = try state.directory(directory, for: .list)
            return (state.directories[number]?.names ?? [:]).sorted { $0.key < $1.key }.map {
                DirectoryItem(name: $0.key, kind: $0.value.kind)
            }
        }
    }

    /// Makes the present state of the file or directory survive a power cut.
    package func sync(_ file: OpenFile, dataOnly: Bool) throws(FileSystemError) {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.sync, at: "", isChange: state.remembersUnsynced)
            switch state.handles[file.number] {
            case .file(let number):
                state.files[number]?.unsynced = UnsyncedPages()
            case .directory(let number):
                state.directories[number]?.unsynced = UnsyncedNames()
            case nil:
                throw FileSystemError(.sync, errno: .badFileDescriptor)
            }
        }
    }

    /// The capacity, and the free part of it.
    package func volume(of file: OpenFile) throws(FileSystemError) -> VolumeStatus {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.inspect, at: "")
            let available = max(0, state.capacity - state.allocatedBytes)
            return VolumeStatus(available: available, total: state.capacity)
        }
    }

    /// Releases the lock.
    package func unlock(_ file: OpenFile) {
        state.withLock { state in
            guard case .file(let number) = state.handles[file.number] else { return }
            state.unlock(number, handle: file.number)
        }
    }

    /// Acquires a shared lock.
    package func share(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.lock, at: "")
            let number = try state.file(file, for: .lock)
            if let holder = state.locks[number], holder != file.number { return false }
            state.locks[number] = nil
            state.shares[number, default: []].insert(file.number)
            return true
        }
    }

    /// Whether another open file has the lock, or a share of it.
    package func isLocked(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.lock, at: "")
            return state.isLocked(try state.file(file, for: .lock), exceptBy: file.number)
        }
    }

    /// Acquires an exclusive lock for the open file.
    package func lock(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.lock, at: "")
            let number = try state.file(file, for: .lock)
            guard !state.isLocked(number, exceptBy: file.number) else { return false }
            state.shares[number] = nil
            state.locks[number] = file.number
            return true
        }
    }
}

extension InMemoryFileSystem.State {
    fileprivate func isLocked(_ number: Int, exceptBy handle: Int32) -> Bool {
        if let holder = locks[number], holder != handle { return true }
        return shares[number]?.contains { $0 != handle } ?? false
    }

    mutating func unlock(_ number: Int, handle: Int32) {
        if locks[number] == handle { locks[number] = nil }
        shares[number]?.remove(handle)
        if shares[number]?.isEmpty == true { shares[number] = nil }
    }
}

extension InMemoryFileSystem.Node {
    fileprivate var kind: FileKind {
        if case .file = self { .file } else { .directory }
    }
}

extension InMemoryFileSystem.State {
    func file(_ file: OpenFile, for call: FileSystemError.Call) throws(FileSystemError) -> Int {
        guard case .file(let number) = handles[file.number] else {
            throw FileSystemError(call, errno: .badFileDescriptor)
        }
        return number
    }

    func directory(_ file: OpenFile, for call: FileSystemError.Call) throws(FileSystemError) -> Int
    {
        guard case .directory(let number) = handles[file.number] else {
            throw FileSystemError(call, errno: .badFileDescriptor)
        }
        return number
    }

    func status(_ node: InMemoryFileSystem.Node) -> FileStatus {
        switch node {
        case .directory(let number):
            return FileStatus(
                kind: .directory,
                size: 0,
                allocatedBytes: 0,
                modified: 0,
                identity: UInt64(number)
            )
        case .file(let number):
            return FileStatus(
                kind: .file,
                size: files[number]?.content.length ?? 0,
                allocatedBytes: shownBytes(number),
                modified: files[number]?.modified ?? 0,
                identity: UInt64(number)
            )
        }
    }

    mutating func create(_ name: String, from start: Int) throws(FileSystemError) -> OpenFile {
        guard let parent = parent(name, from: start) else {
            throw FileSystemError(.create, errno: .noSuchFileOrDirectory)
        }
        let number = newNode()
        files[number] = InMemoryFileSystem.File(modified: now)
        setName(parent.1, in: parent.0, to: .file(number))
        return newHandle(.file(number))
    }
}
