import HTTPCaching
import Logging

/// Fetches the beginnings of what will probably be played next, as in a feed of short videos.
///
/// Give it the ranked list whenever that changes, and what the player has ahead while it plays.
/// What it stores goes first when room is needed, until somebody uses it, and its downloads start
/// after all others. Letting go of it cancels what is under way; what arrived stays. May be used
/// from any thread.
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

    /// Replaces the list of what comes next; the most likely comes first.
    ///
    /// Items that are no longer in it are cancelled at once.
    ///
    /// - Parameter requests: the items; of equal keys the first counts.
    public func rank(_ requests: [CacheRequest]) {
        decide { state in
            state.requests = Dictionary(requests.map { ($0.key, $0) }) { first, _ in first }
            return state.planner.didRank(requests.map(\.key))
        }
    }

    /// Tells what the player has ahead; call it about once a second while something plays.
    ///
    /// - Parameter reserve: what can be played without the network.
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
                    state.tasks[key] = fetch(request, bytes)
                }
            }
            return cancelled
        }
        for task in cancelled {
            task.cancel()
        }
    }

    private func fetch(_ request: CacheRequest, _ bytes: Int64) -> Task<Void, Never> {
        Task { [weak self, responder] in
            let end: End
            do throws(CacheError) {
                let key = request.key
                let fetch = try BeginningFetch(responder, request, bytes: bytes)
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
                // What a disk has refused came all the same.
                let isOfDisk = error.code == .localStorage
                end = .failed(
                    stored: isOfDisk ? nil : await Self.stored(of: request.key, responder.storage)
                )
            }
            self?.didEnd(request.key, end)
        }
    }

    /// How a fetch has ended.
    private enum End {
        case fetched(Int64)
        /// With what is stored all the same; nil if the disk cannot be asked.
        case failed(stored: Int64?)
    }

    private static func stored(of key: CacheKey, _ storage: Storage) async -> Int64? {
        do throws(CacheError) {
            return try await storage.summary(of: key)?.storedBytes ?? 0
        } catch {
            return nil
        }
    }

    private func didEnd(_ key: CacheKey, _ end: End) {
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
    /// A prefetcher of its own ranking; keep it while its list is of interest.
    ///
    /// - Parameter options: how much, and when.
    /// - Returns: the prefetcher, idle.
    public func prefetcher(options: PrefetchOptions = PrefetchOptions()) -> Prefetcher {
        Prefetcher(responder, options: options)
    }
}
