import NIOCore
public import TieredCache

/// An HTTP/1.1 origin on loopback with scripted misbehaviour, over real sockets.
///
/// ```swift
/// let origin = try await ScriptedOrigin.start()
/// origin.serve("/film.mp4", .generated(length: 64 << 20), .first(1, .cut(after: 1 << 20)))
/// // … requests to origin.url("/film.mp4") …
/// await origin.stop()
/// ```
///
/// All methods may be called from any thread. Bodies are generated in pieces and written only as
/// fast as the peer reads them.
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
        /// The open connections, including those that are not served yet.
        var channels: [ObjectIdentifier: any Channel] = [:]
    }

    let state = Guarded(State())
    let timeSource: any TimeSource

    /// Creates an origin that does not listen yet.
    ///
    /// - Parameter timeSource: the clock of delays, throttling and the log.
    public init(timeSource: any TimeSource = SystemTimeSource()) {
        self.timeSource = timeSource
    }

    /// Creates an origin and starts it on a free port.
    ///
    /// - Parameter timeSource: the clock of delays, throttling and the log.
    /// - Returns: the origin, listening.
    /// - Throws: the error of the system if no socket can be bound.
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
    ///   - script: the deviations of the responses.
    public func serve(
        _ path: String,
        _ resource: OriginResource,
        _ script: OriginScript = OriginScript()
    ) {
        state.withLock { $0.served[path] = Served(resource: resource, script: script) }
    }

    /// Answers every request to `path` by `script`, without a resource; for redirects and statuses.
    public func serve(_ path: String, _ script: OriginScript) {
        serve(path, .text(""), script)
    }

    /// Changes the resource at `path`; responses in progress are not affected.
    public func update(_ path: String, with change: @Sendable (inout OriginResource) -> Void) {
        state.withLock { state in
            guard var served = state.served[path] else { return }
            change(&served.resource)
            state.served[path] = served
        }
    }

    /// The present resource at `path`.
    public func resource(_ path: String) -> OriginResource? {
        state.withLock { $0.served[path]?.resource }
    }

    /// Removes the resource at `path`: requests get 404 from now on.
    public func remove(_ path: String) {
        state.withLock { _ = $0.served.removeValue(forKey: path) }
    }

    /// The requests and responses so far.
    public var log: OriginLog { state.withLock { $0.log } }

    /// Returns when `condition` holds for the log, or when the task is cancelled.
    ///
    /// `condition` is called at every change of the log, under the origin's lock: keep it short and
    /// do not use the origin in it.
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
