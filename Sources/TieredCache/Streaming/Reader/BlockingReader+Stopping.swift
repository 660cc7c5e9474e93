// Calls from any thread that end or continue those of the consumer.
extension BlockingReader {
    /// Ends the opening and all current and later reads with `.cancelled`; returns at once.
    public func cancel() {
        stop(with: .readCancelled) { state in
            state.isCancelled = true
            return state.attempt.stop()
        }
        state.withLock { $0.reader }?.cancel()
    }

    /// Ends the opening and all reads with `.interrupted` until ``resume()``; returns at once.
    public func interrupt() {
        stop(with: .readInterrupted) { state in
            state.isInterrupted = true
            // What a try has fetched, or is about to, is for the next one.
            return nil
        }
        tellReader()
    }

    /// Ends calls that wait; `change` returns a task to leave.
    private func stop(
        with error: CacheError,
        _ change: (inout State) -> Task<Void, Never>?
    ) {
        let (stops, attempt) = state.withLock { state in
            let attempt = change(&state)
            return (Array(state.stops.values), attempt)
        }
        for stop in stops { stop(error) }
        leave(attempt)
        tellReadiness()
    }

    /// Reverts ``interrupt()``.
    public func resume() {
        state.withLock { $0.isInterrupted = false }
        tellReader()
        tellReadiness()
    }

    /// Makes the reader do what was asked for last.
    ///
    /// Several threads may do it at once: each looks again after it has told.
    func tellReader() {
        var told: Bool?
        while true {
            let (reader, isInterrupted) = state.withLock { ($0.reader, $0.isInterrupted) }
            guard let reader, isInterrupted != told else { return }
            if isInterrupted { reader.interrupt() } else { reader.resume() }
            told = isInterrupted
        }
    }
}
