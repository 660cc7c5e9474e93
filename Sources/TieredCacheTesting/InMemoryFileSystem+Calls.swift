package import SystemPackage
@_spi(Benchmarks) package import TieredCache

extension InMemoryFileSystem {
    /// Opens a directory from the root of this disk.
    package func openRoot(_ path: FilePath, creating: Bool) throws(FileSystemError) -> OpenFile {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.open, at: path.string, isChange: state.find(path.string) == nil)
            if state.find(path.string) == nil, creating {
                _ = state.makeDirectories(path.string, isSynced: true)
            }
            switch state.find(path.string) {
            case .directory(let number): return state.newHandle(.directory(number))
            case .file: throw FileSystemError(.open, errno: .notDirectory)
            case nil: throw FileSystemError(.open, errno: .noSuchFileOrDirectory)
            }
        }
    }

    /// Opens a file or directory.
    package func open(
        _ name: String,
        in directory: OpenFile,
        mode: OpenMode
    ) throws(FileSystemError) -> OpenFile {
        try state.withLock { state throws(FileSystemError) in
            let creates = mode == .createNew || mode == .openOrCreate
            let start = try state.directory(directory, for: .open)
            let found = state.walk(name, from: start)
            try state.enter(
                creates ? .create : .open,
                at: name,
                isChange: creates && found == nil
            )
            switch (found, mode) {
            case (.directory, .directory), (.file, .read), (.file, .readWrite),
                (.file, .openOrCreate), (.directory, .read):
                guard let found else { break }
                return state.newHandle(found)
            case (.some, .createNew):
                throw FileSystemError(.create, errno: .fileExists)
            case (.some, .directory):
                throw FileSystemError(.open, errno: .notDirectory)
            case (.some, _):
                throw FileSystemError(.open, errno: .isDirectory)
            case (nil, .createNew), (nil, .openOrCreate):
                return try state.create(name, from: start)
            case (nil, _):
                break
            }
            throw FileSystemError(.open, errno: .noSuchFileOrDirectory)
        }
    }

    /// The same as opening for reading: memory never blocks.
    package func openWithoutBlocking(
        _ name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> NonBlocking<OpenFile> {
        .ready(try open(name, in: directory, mode: .read))
    }

    /// Closes a file, and frees it if it has no name.
    package func close(_ file: OpenFile) {
        state.withLock { state in
            guard case .file(let number) = state.handles.removeValue(forKey: file.number) else {
                return
            }
            state.unlock(number, handle: file.number)
            state.files[number]?.opens -= 1
            state.forgetIfUnused(number)
        }
    }

    /// Reads bytes of a file.
    package func read(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> Int {
        nonisolated(unsafe) let buffer = buffer  // Used only while this call lasts.
        return try state.withLock { state throws(FileSystemError) in
            try state.enter(.read, at: "")
            let number = try state.file(file, for: .read)
            return state.files[number]?.content.read(into: buffer, at: offset) ?? 0
        }
    }

    /// The same as reading: memory never blocks.
    package func readWithoutBlocking(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> NonBlocking<Int> {
        .ready(try read(file, into: buffer, at: offset))
    }

    /// Writes bytes, unless they exceed the capacity.
    package func write(
        _ first: UnsafeRawBufferPointer,
        followedBy second: UnsafeRawBufferPointer,
        to file: OpenFile,
        at offset: Int64
    ) throws(FileSystemError) {
        let bytes = [UInt8](first) + [UInt8](second)
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.write, at: "", isChange: true)
            let number = try state.file(file, for: .write)
            let pages = state.files[number]?.content.newPages(bytes.count, at: offset) ?? 0
            guard state.allocatedBytes + Int64(pages * Pages.size) <= state.capacity else {
                throw FileSystemError(.write, errno: .noSpace)
            }
            state.change(number) { content in
                bytes.withUnsafeBytes { content.write($0, at: offset) }
            }
        }
    }

    /// Sets the length of a file.
    package func truncate(_ file: OpenFile, to length: Int64) throws(FileSystemError) {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.resize, at: "", isChange: true)
            let number = try state.file(file, for: .resize)
            state.change(number) { $0.truncate(to: length) }
        }
    }

    /// Punches a hole.
    package func punch(_ file: OpenFile, range: Range<Int64>) throws(FileSystemError) {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.resize, at: "", isChange: true)
            let number = try state.file(file, for: .resize)
            state.change(number) { $0.punch(range) }
        }
    }

    /// The status of an open file.
    package func status(of file: OpenFile) throws(FileSystemError) -> FileStatus {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.inspect, at: "")
            guard let node = state.handles[file.number] else {
                throw FileSystemError(.inspect, errno: .badFileDescriptor)
            }
            return state.status(node)
        }
    }

    /// The status of a file or directory by its name.
    package func status(
        of name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> FileStatus {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.inspect, at: name)
            let start = try state.directory(directory, for: .inspect)
            guard let node = state.walk(name, from: start) else {
                throw FileSystemError(.inspect, errno: .noSuchFileOrDirectory)
            }
            return state.status(node)
        }
    }
}
