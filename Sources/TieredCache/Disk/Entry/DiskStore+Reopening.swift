extension DiskStore {
    /// Opens the file of a dormant entry.
    ///
    /// - Returns: `nil` if it is not the file that was verified any more: look into the record.
    func wake(
        _ dormant: ResidentTable.Found,
        blocking: Bool
    ) throws(FileSystemError) -> NonBlocking<DiskEntry?> {
        let entry = dormant.entry
        beginOpening(entry.name)
        defer { endOpening(entry.name) }
        let (path, verification) = entry.dormantFile
        let found = try fileSystem.openIfPresent(path, in: entries, blocking: blocking)
        guard case .ready(let file) = found else { return .wouldBlock }
        guard let file else { return forget(dormant) }
        guard try isFile(file, verifiedAs: verification) else {
            fileSystem.close(file)
            return forget(dormant)
        }
        if !entry.wake(with: file) {
            fileSystem.close(file)
            // Either another thread was faster, or the entry lost its name meanwhile.
            return .ready(entry.isSuperseded ? nil : entry)
        }
        let leaving = state.withLock { state in
            state.open.residents.didReopen(dormant)
            return shrink(&state)
        }
        retire(leaving, blocking: blocking)
        return .ready(entry)
    }

    private func isFile(
        _ file: OpenFile,
        verifiedAs verification: UInt64
    ) throws(FileSystemError) -> Bool {
        do throws(FileSystemError) {
            return try fileSystem.status(of: file).verification == verification
        } catch {
            fileSystem.close(file)
            throw error
        }
    }

    /// Forgets an entry after another process changed or removed its file.
    private func forget(_ dormant: ResidentTable.Found) -> NonBlocking<DiskEntry?> {
        let removed = state.withLock { $0.open.residents.removeDormant(dormant) }
        withExtendedLifetime(removed) {}
        return .ready(nil)
    }
}
