import NIOCore
public import TieredCache

/// An HTTP/1.1 origin on loopback that serves and misbehaves by script, over real sockets.
///
/// ```swift
/// let origin = try await ScriptedOrigin.start()
/// origin.serve("/film.mp4", .generated(length: 64 << 20), .first(1, .cut(after: 1 << 20)))
/// // … requests to origin.url("/film.mp4") …
/// await origin.stop()
/// ```
///
/// All methods may be called from any thread. Bodies are generated piece by piece and written only
/// as fast as the peer takes them.
public final class ScriptedOrigin: Sendable {
    struct Served: Sendable {
        var resource: OriginResource
        var script: OriginScript
        var requests = 0
    }

    struct Waiter {
        let condition: @Sendable (OriginLog) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    struct State {
        var served: [String: Served] = [:]
        var log = OriginLog()
        var nextWaiter = 0
        var waiters: [Int: Waiter] = [:]
        var port = 0
        var server: Task<Void, Never>?
        /// The connections that are open, also those that nobody serves yet.
        var channels: [ObjectIdentifier: any Channel] = [:]
    }

    let state = Guarded(State())
    let timeSource: any TimeSource

    /// Creates an origin that does not listen yet.
    ///
    /// - Parameter timeSource: what delays and throttles sleep on, and what stamps the log.
    public init(timeSource: any TimeSource = SystemTimeSource()) {
        self.timeSource = timeSource
    }

    /// Creates an origin and starts it on a free port.
    ///
    /// - Parameter timeSource: what delays and throttles sleep on, and what stamps the log.
    /// - Returns: the origin, listening.
    /// - Throws: what the system says when no socket can be had.
    public static func start(
        timeSource: any TimeSource = SystemTimeSource()
    ) async throws -> ScriptedOrigin {
        let origin = ScriptedOrigin(timeSource: timeSource)
        try await origin.start()
        return origin
    }

    /// The port; 0 before the first start.
    public var port: Int { state.withLock { $0.port } }

    /// The absolute URL of `target`, which starts with a slash.
    public func url(_ target: String) -> String { "http://127.0.0.1:\(port)\(target)" }

    /// Serves `resource` under `path`; replaces what was there and restarts its request count.
    ///
    /// - Parameters:
    ///   - path: with its leading slash. A request matches with its query first, then without.
    ///   - resource: what is served.
    ///   - script: how the answers deviate, request by request.
    public func serve(
        _ path: String,
        _ resource: OriginResource,
        _ script: OriginScript = OriginScript()
    ) {
        state.withLock { $0.served[path] = Served(resource: resource, script: script) }
    }

    /// Answers every request to `path` by `script`, without a resource: redirects, statuses.
    public func serve(_ path: String, _ script: OriginScript) {
        serve(path, .text(""), script)
    }

    /// Changes what is served under `path`; answers under way go on with what they began with.
    public func update(_ path: String, _ change: @Sendable (inout OriginResource) -> Void) {
        state.withLock { state in
            guard var served = state.served[path] else { return }
            change(&served.resource)
            state.served[path] = served
        }
    }

    /// The resource under `path` as it is now.
    public func resource(_ path: String) -> OriginResource? {
        state.withLock { $0.served[path]?.resource }
    }

    /// Stops serving `path`: 404 from now on.
    public func remove(_ path: String) {
        state.withLock { _ = $0.served.removeValue(forKey: path) }
    }

    /// What the origin was asked and has answered, up to now.
    public var log: OriginLog { state.withLock { $0.log } }

    /// Returns when `condition` holds for the log, or when the task is cancelled.
    ///
    /// Called at every change of the log, under the origin's lock: keep it short and do not call
    /// the origin from it.
    public func waitUntil(_ condition: @escaping @Sendable (OriginLog) -> Bool) async {
        let number = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let passes = state.withLock { state in
                    guard !condition(state.log), !Task.isCancelled else { return true }
                    state.waiters[number] = Waiter(condition: condition, continuation: continuation)
                    return false
                }
                if passes { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: number) }?.continuation.resume()
        }
    }
}
