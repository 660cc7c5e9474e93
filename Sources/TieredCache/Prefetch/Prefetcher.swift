import HTTPCaching
import Logging

/// Fetches the beginnings of items that will probably be played next, as in a feed of short videos.
///
/// Update the ranked list and the player's reserve whenever they change. Prefetched entries are
/// evicted first until they are used, and prefetches start after all other downloads. Releasing the
/// prefetcher cancels running prefetches; stored bytes stay. May be used from any thread.
public final class Prefetcher: Sendable {
    struct State {
        var planner: PrefetchPlanner
        var requests: [CacheKey: CacheRequest] = [:]
        var tasks: [CacheKey: Task<Void, Never>] = [:]
    }

    private let responder: Responder
    let state: Guarded<State>

    init(_ responder: Responder, options: PrefetchOptions) {
        self.responder = responder
        state = Guarded(State(planner: PrefetchPlanner(options: options)))
    }

    deinit {
        for task in state.withLock({ $0.tasks }).values {
            task.cancel()
        }
    }

    /// Replaces the list of items; the most probable comes first.
    ///
    /// Prefetches of items that are no longer listed are cancelled at once.
    ///
    /// - Parameter requests: the items; of several with one key the first counts.
    public func rank(_ requests: [CacheRequest]) {
        decide { state in
            state.requests = Dictionary(requests.map { ($0.key, $0) }) { first, _ in first }
            return state.planner.didRank(requests.map(\.key))
        }
    }

    /// Reports the media available ahead; call it about once per second during playback.
    ///
    /// - Parameter reserve: the media that can be played without the network.
    public func playerHas(_ reserve: PlaybackReserve) {
        decide { $0.planner.didMeasure(reserve) }
    }

    private func decide(_ input: (inout State) -> [PrefetchPlanner.Action]) {
        let cancelled = state.withLock { state in
            var cancelled: [Task<Void, Never>] = []
            for action in input(&state) {
                switch action {
                case .cancel(let key):
                    if let task = state.tasks[key] { cancelled.append(task) }
                case .start(let key, let bytes):
                    guard let request = state.requests[key] else { continue }
                    state.tasks[key] = fetch(request, bytes: bytes)
                }
            }
            return cancelled
        }
        for task in cancelled {
            task.cancel()
        }
    }

    private func fetch(_ request: CacheRequest, bytes: Int64) -> Task<Void, Never> {
        Task { [weak self, responder] in
            let end: End
            do throws(CacheError) {
                let key = request.key
                let fetch = try BeginningFetch(responder: responder, request: request, bytes: bytes)
                let result = try await fetch.run { [weak self] wanted in
                    self?.state.withLock { $0.planner.didReachTail(key, wanting: wanted) } ?? 0
                }
                end = .fetched(result.bytesFromCache + result.bytesFromOrigin)
            } catch {
                responder.recorder.logger.debug(
                    "not prefetched",
                    metadata: [
                        LogKeys.url: "\(request.target.redacted)",
                        LogKeys.error: "\(error)",
                    ]
                )
                // After a refusal of the disk the bytes were received nevertheless.
                let isOfDisk = error.code == .localStorage
                end = .failed(
                    stored: isOfDisk
                        ? nil : await Self.storedBytes(of: request.key, in: responder.storage)
                )
            }
            self?.didEnd(request.key, with: end)
        }
    }

    /// The end of a fetch.
    private enum End {
        case fetched(Int64)
        /// With the number of bytes stored nevertheless; nil if the disk cannot be read.
        case failed(stored: Int64?)
    }

    private static func storedBytes(of key: CacheKey, in storage: Storage) async -> Int64? {
        do throws(CacheError) {
            return try await storage.summary(of: key)?.storedBytes ?? 0
        } catch {
            return nil
        }
    }

    private func didEnd(_ key: CacheKey, with end: End) {
        decide { state in
            state.tasks[key] = nil
            switch end {
            case .fetched(let bytes): return state.planner.didFinish(key, bytes: bytes)
            case .failed(let stored): return state.planner.didFail(key, bytes: stored)
            }
        }
    }
}

extension MediaCache {
    /// Creates a prefetcher with a ranking of its own; keep it as long as its list matters.
    ///
    /// - Parameter options: how much to fetch, and when.
    /// - Returns: the prefetcher, idle.
    public func prefetcher(options: PrefetchOptions = PrefetchOptions()) -> Prefetcher {
        Prefetcher(responder, options: options)
    }
}
