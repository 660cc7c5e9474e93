import Synchronization

/// Hands events to any number of listeners.
///
/// Without listeners an event costs one atomic load and is not even made. A listener that does not
/// keep up loses its oldest events, never anybody's time or memory.
package final class EventHub: Sendable {
    private struct State {
        var listeners: [UInt64: AsyncStream<MediaCache.Event>.Continuation] = [:]
        var lastListener: UInt64 = 0
        var isFinished = false
    }

    private let count = Atomic(0)
    private let state = Guarded(State())

    package init() {}

    /// Whether somebody listens; cheap enough for the hit path.
    @inline(__always)
    package var hasListeners: Bool { count.load(ordering: .relaxed) > 0 }

    /// Tells all listeners; events posted by one thread arrive in order.
    @inline(__always)
    package func post(_ event: @autoclosure () -> MediaCache.Event) {
        guard hasListeners else { return }
        deliver(event())
    }

    /// A stream of the events from now on; it ends when the hub is finished or its consumer stops.
    ///
    /// - Parameter capacity: how many events wait for a slow consumer before the oldest is lost.
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

    /// Ends all streams, present and future ones.
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
        let listeners = state.withLock { Array($0.listeners.values) }
        for listener in listeners { listener.yield(event) }
    }
}
