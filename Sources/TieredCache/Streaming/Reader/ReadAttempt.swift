import FoundationEssentials

/// The bytes that a consumer has tried to read, and that a task fetches meanwhile.
///
/// States: `idle` → `fetching` (`begin`) → `ended` (`didEnd`) → `idle` (`take`); `stop`, and an end
/// by an interruption, lead to `idle`. Bytes for another offset than the one asked for are dropped.
struct ReadAttempt {
    private enum State {
        case idle
        case fetching(offset: Int64, number: UInt64, task: Task<Void, Never>?)
        case ended(offset: Int64, Result<Data, CacheError>)
    }

    /// What a try finds.
    enum Finding {
        /// The first bytes, as many as were asked for at most; none at the end.
        case bytes(Data)
        case failure(CacheError)
        /// They have not come.
        case awaited
        /// Nothing is under way for this offset; the task is to be cancelled.
        case none(Task<Void, Never>?)
    }

    private var state = State.idle
    private var lastNumber: UInt64 = 0

    /// Whether a task fetches bytes from `offset` on, so that a try would find none.
    func isAwaited(at offset: Int64) -> Bool {
        if case .fetching(offset, _, _) = state { true } else { false }
    }

    /// The task that fetches.
    var task: Task<Void, Never>? {
        if case .fetching(_, _, let task) = state { task } else { nil }
    }

    /// Takes what has come for `offset`; what is left of it stays for the next offset.
    mutating func take(at offset: Int64, atMost count: Int) -> Finding {
        switch state {
        case .fetching(offset, _, _):
            return .awaited
        case .ended(offset, .failure(let error)):
            state = .idle
            return .failure(error)
        case .ended(offset, .success(let bytes)):
            let taken = bytes.prefix(count)
            let rest = bytes.dropFirst(count)
            state = rest.isEmpty ? .idle : .ended(offset: offset + Int64(count), .success(rest))
            return .bytes(taken)
        case .idle, .fetching, .ended:
            return .none(stop())
        }
    }

    /// Begins to fetch; the number names this attempt.
    mutating func begin(at offset: Int64) -> UInt64 {
        lastNumber += 1
        state = .fetching(offset: offset, number: lastNumber, task: nil)
        return lastNumber
    }

    /// Notes the task of an attempt.
    ///
    /// - Returns: false if the attempt was stopped meanwhile, and the task is to be cancelled.
    mutating func didStart(_ number: UInt64, _ task: Task<Void, Never>) -> Bool {
        switch state {
        case .fetching(let offset, number, _):
            state = .fetching(offset: offset, number: number, task: task)
            return true
        case .ended:
            return true
        case .idle, .fetching:
            return false
        }
    }

    /// Notes the end of an attempt; ignored for one that was stopped.
    mutating func didEnd(_ number: UInt64, with result: Result<Data, CacheError>) {
        guard case .fetching(let offset, number, _) = state else { return }
        if case .failure(let error) = result, error.code == .interrupted {
            // The next try begins anew.
            state = .idle
        } else {
            state = .ended(offset: offset, result)
        }
    }

    /// Forgets what is under way and what has come.
    ///
    /// - Returns: the task, to be cancelled outside the lock.
    mutating func stop() -> Task<Void, Never>? {
        defer { state = .idle }
        if case .fetching(_, _, let task) = state { return task }
        return nil
    }
}
