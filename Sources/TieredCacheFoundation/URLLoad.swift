import Foundation
import TieredCache

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One load of a ``TieredURLProtocol``: a task that brings its events, and the queue of those that
/// Foundation has not been told.
///
/// The client of the protocol is called by ``deliver(from:)`` alone, on Foundation's queue. The bell
/// asks Foundation to call that.
final class URLLoad: Sendable {
    private let state: Guarded<URLLoadStateMachine>
    private let bell: @Sendable () -> Void
    private let isStreamed: Bool

    init(bell: @escaping @Sendable () -> Void, isStreamed: Bool) {
        self.bell = bell
        self.isStreamed = isStreamed
        state = Guarded(URLLoadStateMachine())
    }

    /// Begins to load; what memory has is queued when this returns.
    func start(_ request: LoadRequest, cache: MediaCache) {
        let run: @Sendable () async -> Void = { [self] in
            do throws(CacheError) {
                try await load(try await request.answer(from: cache))
            } catch {
                await tell([.failed(error.asURLError(for: request.url))], waits: false)
            }
        }
        let task: Task<Void, Never>
        if #available(macOS 26, iOS 26, tvOS 26, visionOS 26, watchOS 26, *) {
            task = Task.immediate(operation: run)
        } else {
            task = Task(operation: run)
        }
        state.withLock { $0.didStart(task) }?.cancel()
    }

    /// Fails at once, on Foundation's queue.
    func fail(_ error: URLError, from instance: URLProtocol) {
        _ = state.withLock { $0.add([.failed(error)]) }
        deliver(from: instance)
    }

    private func load(_ answer: LoadAnswer) async throws(CacheError) {
        guard isStreamed else {
            // Told now: a delegate may wait for it, and a large body may take long.
            var events = [URLLoadEvent.response(answer.response)]
            if !answer.isAtHand {
                await tell(events, waits: false)
                events = []
                // Whoever started it, Foundation's queue, is not to read the body from the disk.
                await Task.yield()
            }
            let data = try await answer.collect()
            if !data.isEmpty { events.append(.data(data)) }
            return await tell(events + [.finished], waits: false)
        }
        await tell([.response(answer.response)], waits: false)
        var bytes = answer.bytes
        while let data = try await bytes.next() { await tell([.data(data)]) }
        await tell([.finished], waits: false)
    }

    /// Queues events, and waits until Foundation was told all of them: the body is read no faster.
    private func tell(_ events: [URLLoadEvent], waits: Bool = true) async {
        if state.withLock({ $0.add(events) }) { bell() }
        guard waits else { return }
        await withCheckedContinuation { continuation in
            if state.withLock({ $0.wait(continuation) }) { continuation.resume() }
        }
    }

    /// Tells Foundation what has happened; to be called where the client may be called.
    func deliver(from instance: URLProtocol) {
        let (events, waiter) = state.withLock { $0.take() }
        for event in events { event.tell(instance) }
        waiter?.resume()
    }

    /// Tells nothing more until ``deliver(from:)``.
    func pause() { state.withLock { $0.isPaused = true } }

    /// Ends the load; nothing is told any more.
    func cancel() {
        let (task, waiter) = state.withLock { $0.cancel() }
        task?.cancel()
        waiter?.resume()
    }
}

/// What Foundation is told of a load.
enum URLLoadEvent: Sendable {
    case response(URLResponse)
    case data(Data)
    case finished
    case failed(URLError)

    /// Tells the client of a protocol.
    fileprivate func tell(_ instance: URLProtocol) {
        let client = instance.client
        switch self {
        case .response(let response):
            client?.urlProtocol(instance, didReceive: response, cacheStoragePolicy: .notAllowed)
        case .data(let data): client?.urlProtocol(instance, didLoad: data)
        case .finished: client?.urlProtocolDidFinishLoading(instance)
        case .failed(let error): client?.urlProtocol(instance, didFailWithError: error)
        }
    }
}
