import Synchronization

/// Delivers events to any number of listeners.
///
/// Without listeners an event costs one atomic load and is not even created. A listener that cannot
/// keep up loses its oldest events; it delays no other and uses bounded memory.
package final class EventHub: Sendable {
    private struct State {
        var listeners: [UInt64: AsyncStream<MediaCache.Event>.Continuation] = [:]
        var lastListener: UInt64 = 0
        var isFinished = false
    }

    private let count = Atomic(0)
    private let state = Guarded(State())

    package init() {}

    /// Whether there are listeners; cheap enough for the hit path.
    @inline(__always)
    package var hasListeners: Bool { count.load(ordering: .relaxed) > 0 }

    /// Delivers an event to all listeners; events of one thread arrive in order.
    @inline(__always)
    package func post(_ event: @autoclosure () -> MediaCache.Event) {
        guard hasListeners else { return }
        deliver(event())
    }

    /// A stream of the events from now on; it ends with the hub or when its consumer stops.
    ///
    /// - Parameter capacity: the number of events buffered for a slow consumer.
    /// - Returns: the stream, for one consumer.
    package func events(capacity: Int = 1_024) -> AsyncStream<MediaCache.Event> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: MediaCache.Event.self,
            bufferingPolicy: .bufferingNewest(max(1, capacity))
        )
        guard let id = add(continuation) else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in self?.remove(id) }
        return stream
    }

    /// Ends all streams, current and later ones.
    package func finish() {
        let listeners = state.withLock { state in
            defer { state.listeners = [:] }
            state.isFinished = true
            count.store(0, ordering: .relaxed)
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }

    private func add(_ continuation: AsyncStream<MediaCache.Event>.Continuation) -> UInt64? {
        state.withLock { state in
            guard !state.isFinished else { return nil }
            state.lastListener += 1
            state.listeners[state.lastListener] = continuation
            count.store(state.listeners.count, ordering: .relaxed)
            return state.lastListener
        }
    }

    private func remove(_ id: UInt64) {
        // Returned, so that it is released outside the lock.
        _ = state.withLock { state in
            defer { count.store(state.listeners.count, ordering: .relaxed) }
            return state.listeners.removeValue(forKey: id)
        }
    }

    private func deliver(_ event: MediaCache.Event) {
        // Yielding resumes the consumer's continuation, so it happens outside the lock.
        LockChecker.assertHoldsNoValue()
        let listeners = state.withLock { Array($0.listeners.values) }
        for listener in listeners { listener.yield(event) }
    }
}
