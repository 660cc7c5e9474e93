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
        let found = try fileSystem.openIfPresent(path, in: entries, blocking: blocking)
        guard case .ready(let file) = found else { return .wouldBlock }
        guard let file else { return forget(resting) }
        guard try isFile(file, verification) else {
            fileSystem.close(file)
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

    private func isFile(
        _ file: OpenFile,
        _ verification: UInt64
    ) throws(FileSystemError) -> Bool {
        do throws(FileSystemError) {
            return try fileSystem.status(of: file).verification == verification
        } catch {
            fileSystem.close(file)
            throw error
        }
    }

    /// Lets go of what is known about a file that somebody else changed or removed.
    private func forget(_ resting: ResidentTable.Found) -> NonBlocking<DiskEntry?> {
        let removed = state.withLock { $0.open.residents.removeResting(resting) }
        withExtendedLifetime(removed) {}
        return .ready(nil)
    }
}
