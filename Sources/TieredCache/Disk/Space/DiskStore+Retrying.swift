import SystemPackage

// If the machine has no descriptor or no room left, the store frees some of its own and tries
// again, once.
extension DiskStore {
    /// Runs `body`, and again if it failed for want of descriptors and idle ones could be closed.
    func sparingDescriptors<Result>(
        _ body: () throws(FileSystemError) -> Result
    ) throws(FileSystemError) -> Result {
        do throws(FileSystemError) {
            return try body()
        } catch
            where error.errno == .tooManyOpenFiles
            || error.errno == .tooManyOpenFilesInSystem
        {
            guard closeIdle() else { throw error }
            return try body()
        }
    }

    /// Opens a file, closing idle ones for it if need be.
    func open(
        _ path: String,
        in directory: OpenFile,
        mode: OpenMode
    ) throws(FileSystemError) -> OpenFile {
        try sparingDescriptors { () throws(FileSystemError) in
            try fileSystem.open(path, in: directory, mode: mode)
        }
    }

    /// Lists a directory, closing idle files for it if need be.
    func list(
        _ name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> [DirectoryItem] {
        try sparingDescriptors { () throws(FileSystemError) in
            try fileSystem.list(name, in: directory)
        }
    }

    /// Opens a regular file; see ``FileSystem/openFile(_:in:_:)``.
    func openFile(
        _ path: String,
        in directory: OpenFile,
        mode: OpenMode
    ) throws(FileSystemError) -> OpenFile {
        try sparingDescriptors { () throws(FileSystemError) in
            try fileSystem.openFile(path, in: directory, mode: mode)
        }
    }

    /// Closes the files of all unused entries.
    ///
    /// - Returns: whether there were any.
    private func closeIdle() -> Bool {
        let (leaving, isFewer) = state.withLock { state in
            let before = state.open.residents.openCount
            let leaving = shrink(&state, to: 0)
            return (leaving, state.open.residents.openCount < before)
        }
        // A caller may hold the lock of a name, so uses are not written down.
        retire(leaving, blocking: false)
        return isFewer
    }

    /// Runs `body`, and again if the volume was full and entries could be evicted.
    ///
    /// `body` reserves nothing and can be repeated.
    func sparingRoom<Result>(
        _ count: Int64,
        body: () throws(CacheError) -> Result
    ) throws(CacheError) -> Result {
        // At every call, and not only when the volume is full: the retry below loads the index.
        LockChecker.assertMayTake(.loading)
        do throws(CacheError) {
            return try body()
        } catch  where error.isVolumeFull {
            state.withLock { $0.space.forgetVolume() }
            try loadIndex()
            guard evict(atMost: Self.evictionBatch, until: { count - $0 }).freed > 0 else {
                throw error
            }
            return try body()
        }
    }
}

extension CacheError {
    fileprivate var isVolumeFull: Bool {
        guard let errno = (cause as? FileSystemError)?.errno else { return false }
        return errno == .noSpace || errno == .diskQuotaExceeded
    }
}
