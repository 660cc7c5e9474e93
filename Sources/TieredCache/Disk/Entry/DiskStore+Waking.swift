extension DiskStore {
    /// Opens the file of a resting entry.
    ///
    /// - Returns: `nil` if it is not the file that was verified any more: look into the record.
    func wake(
        _ resting: ResidentTable.Found,
        blocking: Bool
    ) throws(FileSystemError) -> NonBlocking<DiskEntry?> {
        let entry = resting.entry
        beginOpening(entry.name)
        defer { endOpening(entry.name) }
        let (path, verification) = entry.restingFile
        guard case .ready(let file) = try openIfPresent(path, blocking: blocking) else {
            return .wouldBlock
        }
        guard let file, try isFile(file, verification) else {
            if let file { fileSystem.close(file) }
            return forget(resting)
        }
        if !entry.wake(with: file) {
            fileSystem.close(file)
            // Either another thread was faster, or the entry lost its name meanwhile.
            return .ready(entry.isSuperseded ? nil : entry)
        }
        let leaving = state.withLock { state in
            state.open.residents.didWake(resting)
            return shrink(&state)
        }
        retire(leaving, blocking: blocking)
        return .ready(entry)
    }

    private func openIfPresent(
        _ path: String,
        blocking: Bool
    ) throws(FileSystemError) -> NonBlocking<OpenFile?> {
        guard let entries else { return .ready(nil) }
        do throws(FileSystemError) {
            if blocking { return .ready(try fileSystem.open(path, in: entries, .read)) }
            switch try fileSystem.openWithoutBlocking(path, in: entries) {
            case .ready(let file): return .ready(file)
            case .wouldBlock: return .wouldBlock
            }
        } catch  where error.isAbsence {
            return .ready(nil)
        }
    }

    private func isFile(
        _ file: OpenFile,
        _ verification: UInt64
    ) throws(FileSystemError) -> Bool {
        try statusOrClose(file).verification == verification
    }

    /// Lets go of what is known about a file that somebody else changed or removed.
    private func forget(_ resting: ResidentTable.Found) -> NonBlocking<DiskEntry?> {
        let removed = state.withLock { $0.open.residents.removeResting(resting) }
        withExtendedLifetime(removed) {}
        return .ready(nil)
    }
}
