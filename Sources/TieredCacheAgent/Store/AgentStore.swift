package import TieredCache

/// The journal, and the thread on which it is read and written.
///
/// An actor without an executor of its own runs on that of the task: each call brings the pool
/// whose threads may block.
package actor AgentStore {
    private var journal: AgentJournal
    private let files: IOExecutor

    /// Takes a journal.
    package init(_ journal: consuming AgentJournal, files: IOExecutor) {
        self.journal = journal
        self.files = files
    }

    /// What is to be written, and what is done when it is.
    package struct Batch: Sendable {
        package var changes: [AgentJournal.Change] = []
        package var notifications: [DownloadNotification] = []
        package var commands: [SessionCommand] = []

        package var isEmpty: Bool {
            changes.isEmpty && notifications.isEmpty && commands.isEmpty
        }
    }

    /// Writes what is there to be written; in order, since one call runs at a time.
    ///
    /// - Parameters:
    ///   - take: gives what is to be written, and has nothing more then.
    ///   - putBack: gets it again where it could not be written.
    ///   - done: gets it when it was.
    /// - Throws: ``CacheError``, `.localStorage`.
    package nonisolated func write(
        taking take: @escaping @Sendable () -> Batch,
        puttingBack putBack: @escaping @Sendable (Batch) -> Void,
        done: @escaping @Sendable (Batch) -> Void
    ) async throws(CacheError) {
        let result: Result<Void, CacheError> = await withTaskExecutorPreference(files) {
            await perform(take, putBack, done)
        }
        try result.get()
    }

    private func perform(
        _ take: @Sendable () -> Batch,
        _ putBack: @Sendable (Batch) -> Void,
        _ done: @Sendable (Batch) -> Void
    ) -> Result<Void, CacheError> {
        let batch = take()
        guard !batch.isEmpty else { return .success(()) }
        do throws(CacheError) {
            try journal.append(batch.changes)
            done(batch)
            return .success(())
        } catch {
            putBack(batch)
            return .failure(error)
        }
    }

    /// The records of downloads that have stopped, as far as they can be read.
    package nonisolated func records(_ gids: [GID]) async throws(CacheError) -> [DownloadRecord] {
        let result: Result<[DownloadRecord], CacheError> = await withTaskExecutorPreference(files) {
            await read(gids)
        }
        return try result.get()
    }

    private func read(_ gids: [GID]) -> Result<[DownloadRecord], CacheError> {
        do throws(CacheError) {
            var records: [DownloadRecord] = []
            for gid in gids {
                if let record = try journal.record(gid) { records.append(record) }
            }
            return .success(records)
        } catch {
            return .failure(error)
        }
    }
}
