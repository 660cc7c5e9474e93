import FoundationEssentials

// For consumers that must not wait, as those with an event loop.
extension BlockingReader {
    /// The most bytes that wait for a consumer.
    private static let maximumAwaited = 64 << 10

    /// Reads from the cursor what is there, and advances it by the number of bytes; never waits for
    /// the network.
    ///
    /// What is not there is fetched, for the next call. It may wait for the disk where a stored
    /// byte is not in the page cache.
    ///
    /// - Parameter buffer: the destination.
    /// - Returns: the number of bytes; 0 at the end, and only there; nil if there are none yet.
    /// - Throws: the errors of ``unsafeRead(into:deadline:)``; the next call tries again.
    package func unsafeTryRead(
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(CacheError) -> Int? {
        try noting { () throws(CacheError) in
            if let stopped = state.withLock({ $0.stopped }) { throw stopped }
            let offset = position
            let finding = state.withLock { $0.attempt.take(at: offset, atMost: buffer.count) }
            switch finding {
            case .awaited: return nil
            case .failure(let error): throw error
            case .bytes(let bytes):
                let count = ReadDestination(buffer: buffer).copy(bytes)
                advance(from: offset, by: count)
                return count
            case .none(let task): leave(task)
            }
            let read = Read(offset: offset, destination: ReadDestination(buffer: buffer))
            if let reader, let count = try readWithoutWaiting(read, from: reader) {
                advance(from: offset, by: count)
                return count
            }
            begin(at: offset, count: buffer.count)
            return nil
        }
    }

    private func advance(from offset: Int64, by count: Int) {
        // A concurrent seek wins.
        state.withLock { if $0.position == offset { $0.position += Int64(count) } }
    }

    private func begin(at offset: Int64, count: Int) {
        let number: UInt64? = state.withLock { state in
            guard state.stopped == nil else { return nil }
            return state.attempt.begin(at: offset)
        }
        tellReadiness()
        guard let number else { return }
        let end = time.monotonicTime().advanced(by: options.deadline)
        let (openReader, time, request) = (openReader, time, request)
        let leaving = state.withLock { $0.leaving }
        let task = Task(priority: .high) { [weak self, reader] in
            let alarm = time.alarm(after: time.monotonicTime().duration(to: end)) { [weak self] in
                // A reader that is open has a deadline of its own.
                guard let self, self.reader == nil else { return }
                let error = CacheError(
                    .timedOut,
                    "\(request.target.redacted) was not opened in time"
                )
                didEnd(number, with: .failure(error))
            }
            defer { alarm.cancel() }
            let result: Result<Data, CacheError>
            do throws(CacheError) {
                var opened = reader
                if opened == nil {
                    let new = try await openReader()
                    opened = self?.adopt(new)
                }
                guard let opened else { return }
                await leaving?.value
                let buffer = ReadBuffer(capacity: min(count, Self.maximumAwaited))
                let read = Read(offset: offset, destination: ReadDestination(buffer))
                let left = time.monotonicTime().duration(to: end)
                let count = try await opened.read(read, deadline: left)
                result = .success(buffer.data(count: count))
            } catch {
                result = .failure(error)
            }
            self?.didEnd(number, with: result)
        }
        let isCurrent = state.withLock { $0.attempt.didStart(number, task) }
        if !isCurrent { leave(task) }
    }

    private func didEnd(_ number: UInt64, with result: Result<Data, CacheError>) {
        state.withLock { $0.attempt.didEnd(number, with: result) }
        tellReadiness()
    }

    // MARK: Readiness

    #if os(Linux)
    /// A descriptor that can be polled: readable unless ``unsafeTryRead(into:)`` has returned nil
    /// and nothing has come since.
    ///
    /// It is the same at each call, and closed when the reader is released. Not to be read.
    ///
    /// - Returns: the descriptor.
    /// - Throws: `.localStorage` if the process has none left.
    package func readinessDescriptor() throws(CacheError) -> Int32 {
        if let known = state.withLock({ $0.readiness }) { return known.number }
        let new = try EventDescriptor()
        let kept = state.withLock { state in
            let kept = state.readiness ?? new
            state.readiness = kept
            return kept
        }
        tellReadiness()
        return kept.number
    }
    #endif

    /// Makes the descriptor say what is so.
    ///
    /// Several threads may do it at once: each looks again after it has told.
    func tellReadiness() {
        guard let readiness = state.withLock({ $0.readiness }) else { return }
        var told: Bool?
        while true {
            let isReady = state.withLock { state in
                state.stopped != nil || !state.attempt.isAwaited(at: state.position)
            }
            guard isReady != told else { return }
            readiness.set(isReady)
            told = isReady
        }
    }
}
