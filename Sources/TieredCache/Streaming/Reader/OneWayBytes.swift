import FoundationEssentials

/// Bytes that come once and in order, taken in pieces of the caller's size.
///
/// A chunk that is awaited when a read is interrupted is kept for the next one.
final class OneWayBytes: Sendable {
    /// What a look at the next byte has found.
    enum Taken {
        case bytes(Int)
        /// A chunk is on its way; the signal is bumped when it is there.
        case awaited
        case end
        case failed(CacheError)
    }

    private struct State {
        var position: Int64
        var rest = Data()
        var isAwaiting = false
        var end: Result<Void, CacheError>?
    }

    private let source: any BodySource
    private let signal: ProgressSignal
    private let state: Guarded<State>
    private let task = Guarded<Task<Void, Never>?>(nil)

    init(_ source: any BodySource, at position: Int64, signal: ProgressSignal) {
        self.source = source
        self.signal = signal
        state = Guarded(State(position: position))
    }

    deinit {
        task.withLock { $0 }?.cancel()
    }

    /// The offset of the next byte.
    var position: Int64 { state.withLock { $0.position } }

    /// Why the bytes are not stored; nil if they are.
    var storageTrouble: CacheError? { source.storageTrouble }

    /// Takes the next bytes if they are there; otherwise asks for them.
    func take(_ destination: ReadDestination) -> Taken {
        let (taken, asks) = state.withLock { state -> (Taken, Bool) in
            if !state.rest.isEmpty {
                let count = destination.copy(state.rest)
                state.rest = Data(state.rest.dropFirst(count))
                state.position += Int64(count)
                return (.bytes(count), false)
            }
            switch state.end {
            case .success: return (.end, false)
            case .failure(let error): return (.failed(error), false)
            case nil: break
            }
            defer { state.isAwaiting = true }
            return (.awaited, !state.isAwaiting)
        }
        if asks { ask() }
        return taken
    }

    /// Leaves out bytes that nobody wants, as far as they are there.
    ///
    /// - Returns: whether `offset` was reached.
    func skip(to offset: Int64) -> Bool {
        state.withLock { state in
            let count = Int(min(Int64(state.rest.count), max(0, offset - state.position)))
            state.rest = Data(state.rest.dropFirst(count))
            state.position += Int64(count)
            return state.position == offset
        }
    }

    private func ask() {
        let (source, signal) = (source, signal)
        let asking = Task { [weak self] in
            let result: Result<Data?, CacheError>
            do throws(CacheError) {
                result = .success(try await source.next())
            } catch {
                result = .failure(error)
            }
            self?.didGet(result)
            signal.bump()
        }
        task.withLock { $0 = asking }
    }

    private func didGet(_ result: Result<Data?, CacheError>) {
        state.withLock { state in
            state.isAwaiting = false
            switch result {
            case .success(let bytes?): state.rest = bytes
            case .success(nil): state.end = .success(())
            case .failure(let error): state.end = .failure(error)
            }
        }
    }
}
