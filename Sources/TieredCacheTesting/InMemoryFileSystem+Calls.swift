package import SystemPackage
@_spi(Benchmarks) package import TieredCache

extension InMemoryFileSystem {
    /// Opens a directory from the root of this disk.
    package func openRoot(_ path: FilePath, creating: Bool) throws(FileSystemError) -> OpenFile {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.open, path.string, isChange: state.find(path.string) == nil)
            if state.find(path.string) == nil, creating {
                _ = state.makeDirectories(path.string, isSynced: true)
            }
            switch state.find(path.string) {
            case .directory(let number): return state.newHandle(.directory(number))
            case .file: throw FileSystemError(.open, .notDirectory)
            case nil: throw FileSystemError(.open, .noSuchFileOrDirectory)
            }
        }
    }

    /// Opens a file or directory.
    package func open(
        _ name: String,
        in directory: OpenFile,
        _ mode: OpenMode
    ) throws(FileSystemError) -> OpenFile {
        try state.withLock { state throws(FileSystemError) in
            let creates = mode == .createNew || mode == .openOrCreate
            let start = try state.directory(directory, .open)
            let found = state.walk(name, from: start)
            try state.enter(
                creates ? .create : .open,
                name,
                isChange: creates && found == nil
            )
            switch (found, mode) {
            case (.directory, .directory), (.file, .read), (.file, .readWrite),
                (.file, .openOrCreate), (.directory, .read):
                guard let found else { break }
                return state.newHandle(found)
            case (.some, .createNew):
                throw FileSystemError(.create, .fileExists)
            case (.some, .directory):
                throw FileSystemError(.open, .notDirectory)
            case (.some, _):
                throw FileSystemError(.open, .isDirectory)
            case (nil, .createNew), (nil, .openOrCreate):
                return try state.create(name, from: start)
            case (nil, _):
                break
            }
            throw FileSystemError(.open, .noSuchFileOrDirectory)
        }
    }

    /// The same as opening for reading: memory never blocks.
    package func openWithoutBlocking(
        _ name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> NonBlocking<OpenFile> {
        .ready(try open(name, in: directory, .read))
    }

    /// Closes a file, and frees it if it has no name.
    package func close(_ file: OpenFile) {
        state.withLock { state in
            guard case .file(let number) = state.handles.removeValue(forKey: file.number) else {
                return
            }
            state.unlock(number, file.number)
            state.files[number]?.opens -= 1
            state.forgetIfUnused(number)
        }
    }

    /// Copies what the file has.
    package func read(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> Int {
        nonisolated(unsafe) let buffer = buffer  // Used only while this call lasts.
        return try state.withLock { state throws(FileSystemError) in
            try state.enter(.read, "")
            let number = try state.file(file, .read)
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

    /// Writes, as far as the capacity goes.
    package func write(
        _ first: UnsafeRawBufferPointer,
        _ second: UnsafeRawBufferPointer,
        to file: OpenFile,
        at offset: Int64
    ) throws(FileSystemError) {
        let bytes = [UInt8](first) + [UInt8](second)
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.write, "", isChange: true)
            let number = try state.file(file, .write)
            let pages = state.files[number]?.content.newPages(bytes.count, at: offset) ?? 0
            guard state.allocatedBytes + Int64(pages * Pages.size) <= state.capacity else {
                throw FileSystemError(.write, .noSpace)
            }
            state.change(number) { content in
                bytes.withUnsafeBytes { content.write($0, at: offset) }
            }
        }
    }

    /// Sets the length.
    package func truncate(_ file: OpenFile, to length: Int64) throws(FileSystemError) {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.resize, "", isChange: true)
            let number = try state.file(file, .resize)
            state.change(number) { $0.truncate(to: length) }
        }
    }

    /// Makes a hole.
    package func punch(_ file: OpenFile, _ range: Range<Int64>) throws(FileSystemError) {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.resize, "", isChange: true)
            let number = try state.file(file, .resize)
            state.change(number) { $0.punch(range) }
        }
    }

    /// The status of an open file.
    package func status(of file: OpenFile) throws(FileSystemError) -> FileStatus {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.inspect, "")
            guard let node = state.handles[file.number] else {
                throw FileSystemError(.inspect, .badFileDescriptor)
            }
            return state.status(node)
        }
    }

    /// The status of what has a name.
    package func status(
        of name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> FileStatus {
        try state.withLock { state throws(FileSystemError) in
            try state.enter(.inspect, name)
            let start = try state.directory(directory, .inspect)
            guard let node = state.walk(name, from: start) else {
                throw FileSystemError(.inspect, .noSuchFileOrDirectory)
            }
            return state.status(node)
        }
    }
}
