import Synchronization

/// The lock of a cache directory, held while anything is written and until the store is closed.
///
/// States: `open` (any number of writes under way) → `closing` (closed, writes under way) →
/// `closed`. Nothing begins to write once it is closed; the last write to end gives the lock up.
/// Readers of a closed store's entries go on through open descriptors, as a guest does, so the next
/// process that opens the directory owns it at once.
///
/// A lock is lost when its file is not the directory's LOCK any more: it excludes no process then,
/// so no write begins. It is closed like any other.
final class DirectoryLock: Sendable {
    private struct State {
        var file: OpenFile?
        var writes = 0
        var isClosed = false

        /// The file, if it is time to close it.
        mutating func takeFile() -> OpenFile? {
            guard isClosed, writes == 0 else { return nil }
            defer { file = nil }
            return file
        }
    }

    /// Completed once the directory is given up: at once for who does not own it.
    let released = Latch<Void>()

    private let state: Guarded<State>
    private let lost = Atomic<Bool>(false)

    init(_ file: OpenFile?) {
        state = Guarded(State(file: file))
        if file == nil { released.complete(with: .success(())) }
    }

    /// Whether the lock no longer excludes other processes.
    var isLost: Bool { lost.load(ordering: .relaxed) }

    /// Notes that the lock no longer excludes other processes.
    func lose() { lost.store(true, ordering: .relaxed) }

    /// Whether nothing is being written, and nothing will be.
    var isClosed: Bool { state.withLock { $0.isClosed && $0.writes == 0 } }

    /// Whether writing may begin.
    var mayBeginWrite: Bool { !isLost && state.withLock { !$0.isClosed } }

    /// - Returns: whether writing may begin; if so, ``endWrite()`` has to follow.
    func beginWrite() -> Bool {
        state.withLock { state in
            guard !state.isClosed, !isLost else { return false }
            state.writes += 1
            return true
        }
    }

    /// Calls `body` with the file that holds the lock, which the write under way keeps open.
    func withFile<Failure: Error>(_ body: (OpenFile) throws(Failure) -> Void) throws(Failure) {
        let file = state.withLock { state in
            assert(state.writes > 0, "the lock's file is used while nothing is written")
            return state.file
        }
        if let file { try body(file) }
    }

    /// - Returns: the file that holds the lock, if it is to be closed now.
    func endWrite() -> OpenFile? {
        state.withLock { state in
            state.writes -= 1
            return state.takeFile()
        }
    }

    /// - Returns: the file that holds the lock, if it is to be closed now.
    func close() -> OpenFile? {
        state.withLock { state in
            // Set before the last write ends: from here on no further one begins.
            state.isClosed = true
            return state.takeFile()
        }
    }
}
