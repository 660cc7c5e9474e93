public import FoundationEssentials
import Logging
import SystemPackage
public import TieredCache

/// Answers other processes that use the same cache directory, as long as this one owns it.
///
/// A directory has one owner, which stores; the others are its guests. What a guest misses it asks
/// of the owner, at a socket in the directory, so that two processes fetch a byte once and it is
/// stored. Without this service a guest asks origins itself, and stores nothing.
///
/// ```swift
/// let cache = try MediaCache(configuration)
/// let guests = GuestService(cache: cache, directory: configuration.directory)
/// …
/// await guests.stop()
/// await cache.shutdown()
/// ```
///
/// Only processes of the same user are answered, and of root. Where nothing can listen, for example
/// on a volume without sockets, that is logged, and guests go on by themselves.
public final class GuestService: Sendable {
    /// States: `idle` → `changing` → `changing` again, each behind the one before, or `stopped`.
    private enum State {
        case idle
        /// The last step, which gives the server that it has left running.
        case changing(Task<HTTPServer?, Never>)
        case stopped
    }

    /// A few processes with a few requests each; the other descriptors are for clients and files.
    private static let maximumConnections = 64

    private let directory: FilePath?
    private let responder: GuestResponder
    private let state = Guarded(State.idle)

    /// Begins to listen as soon as the process owns the directory, in the background.
    ///
    /// - Parameters:
    ///   - cache: the cache; the caller shuts it down, after the service.
    ///   - directory: its directory; nil for none, and so no guests.
    ///   - settings: time limits, the logger, the rules for hosts.
    public init(cache: MediaCache, directory: URL?, settings: ProxySettings = ProxySettings()) {
        self.directory = directory.flatMap { FilePath(fileURL: $0) }
        var settings = settings
        // A guest whose answer is cut goes on by itself.
        settings.limits.stopTimeout = .zero
        responder = GuestResponder(cache: cache, settings: settings)
        guard self.directory != nil else { return }
        cache.whenOwnershipChanges { [weak self] in self?.listenOrStop() }
    }

    /// Listens anew, as the directory may be another one under the same name, or no more, where this
    /// process does not own it.
    private func listenOrStop() {
        state.withLock { state in
            let before: Task<HTTPServer?, Never>?
            switch state {
            case .idle: before = nil
            case .changing(let step): before = step
            case .stopped: return
            }
            // One behind the other: both would bind the same name.
            state = .changing(
                Task { [self] in
                    await before?.value?.stop()
                    return await server()
                }
            )
        }
    }

    /// Whether it is to listen; until it does, ``listenOrStop()`` and ``stop()`` wait for it.
    private var isWanted: Bool {
        if case .stopped = state.withLock({ $0 }) { return false }
        return responder.cache.storageError == nil
    }

    private func server() async -> HTTPServer? {
        guard let directory, isWanted else { return nil }
        do {
            return try await HTTPServer.start(
                at: .socket(
                    directory.appending(OwnerSocket.name),
                    on: responder.cache.writers,
                    if: { [self] in isWanted }
                ),
                responder: responder,
                limits: responder.settings.limits,
                maximumConnections: Self.maximumConnections,
                logger: responder.settings.logger
            )
        } catch Errno.canceled {
            return nil
        } catch {
            responder.settings.logger.warning(
                "other processes that use the directory fetch by themselves",
                metadata: ["error": "\(error)"]
            )
            return nil
        }
    }

    /// Replaces ``ProxySettings/rules``, for the requests to come.
    ///
    /// Nothing is stored of a host that they exclude; all else of a rule is the guest's.
    public func setRules(_ rules: HostRules) { responder.rules.replace(with: rules) }

    /// Waits until it listens, or cannot; returns at once where the directory has another owner.
    package func untilListening() async {
        if case .changing(let step) = state.withLock({ $0 }) { _ = await step.value }
    }

    /// How many guests are connected, and how many connections there ever were since it listens.
    package func clients() async -> (connected: Int, total: Int) {
        guard case .changing(let step) = state.withLock({ $0 }), let server = await step.value
        else { return (0, 0) }
        return (server.connections.count, server.connections.total)
    }

    /// Stops listening and closes all connections: guests go on by themselves.
    public func stop() async {
        let last = state.withLock { state in
            defer { state = .stopped }
            return state
        }
        if case .changing(let step) = last { await step.value?.stop() }
    }
}
