#if HTTPClient
import NIOCore
import NIOPosix
import SystemPackage

/// The connections of a transport: those that wait for a request, and all that are open.
///
/// A request takes the connection that was used last, and opens one where none waits.
final class ConnectionPool: Sendable {
    private struct State {
        var idle = IdleConnections()
        /// All connections, those that are being opened too.
        var open: [ObjectIdentifier: Connection] = [:]
        var isClosed = false
        /// Resumed once the pool is closed and has no connection.
        var drained: [CheckedContinuation<Void, Never>] = []

        mutating func takeDrained() -> [CheckedContinuation<Void, Never>] {
            guard isClosed, open.isEmpty else { return [] }
            defer { drained = [] }
            return drained
        }
    }

    private let connector: Connector
    private let state = Guarded(State())

    init(additionalTrustRoots: [FilePath], lookups: HostLookups) {
        connector = Connector(additionalTrustRoots: additionalTrustRoots, lookups: lookups)
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Sends a request; its exchange learns how that ends.
    ///
    /// - Throws: `.shutDown` or `.invalidRequest`; nothing is sent then.
    func start(_ request: OutgoingRequest, for exchange: Exchange) throws(TransportError) {
        let here = EventLoops.current
        let waiting = try state.withLock { state throws(TransportError) -> Connection? in
            guard !state.isClosed else { throw Self.shutDown }
            return request.isAlone ? nil : state.idle.take(request.peer, preferring: here)
        }
        if let waiting { return waiting.begin(request, for: exchange) }
        let (address, isSecure) = try request.peer.resolve()
        let opening = connector.connect(
            request.peer,
            at: address,
            isSecure: isSecure,
            within: request.connectTimeout,
            on: here ?? EventLoops.any(),
            for: self
        )
        opening.whenComplete { result in
            switch result {
            case .success(let connection): connection.begin(request, for: exchange)
            case .failure(let error): self.didFail(to: exchange, with: error)
            }
        }
    }

    /// Sends a request for which the connection was closed before it had begun.
    func startAgain(_ request: OutgoingRequest, for exchange: Exchange) {
        guard !exchange.isCancelled else { return }
        do {
            try start(request, for: exchange)
        } catch {
            didFail(to: exchange, with: error)
        }
    }

    private func didFail(to exchange: Exchange, with error: any Error) {
        // Its failure is then that of the transport.
        if isClosed { exchange.cancel() } else { exchange.didFail(error) }
    }

    // MARK: Calls of connections

    /// Registers a connection that is about to be opened; false if the pool is closed.
    func didMake(_ connection: Connection) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.open[ObjectIdentifier(connection)] = connection
            return true
        }
    }

    func didClose(_ connection: Connection) {
        let drained = state.withLock { state in
            _ = state.idle.remove(connection)
            state.open[ObjectIdentifier(connection)] = nil
            return state.takeDrained()
        }
        for waiter in drained { waiter.resume() }
    }

    /// Keeps a connection for the next request; false if it has to be closed.
    func giveBack(_ connection: Connection) -> Bool {
        let (isKept, leaving) = state.withLock { state -> (Bool, Connection?) in
            guard !state.isClosed else { return (false, nil) }
            return (true, state.idle.keep(connection))
        }
        leaving?.close()
        return isKept
    }

    /// Takes a connection that must get no request any more; false if one is about to come.
    func takeBack(_ connection: Connection) -> Bool {
        state.withLock { $0.idle.remove(connection) }
    }

    // MARK: The end

    /// Closes all connections, and cancels the exchanges on them, without waiting.
    func close() {
        let open = state.withLock { state in
            state.isClosed = true
            state.idle = IdleConnections()
            return Array(state.open.values)
        }
        for connection in open { connection.close() }
    }

    /// Closes all connections and waits until they are closed.
    func shutDown() async {
        close()
        await withCheckedContinuation { continuation in
            let drained = state.withLock { state in
                state.drained.append(continuation)
                return state.takeDrained()
            }
            for waiter in drained { waiter.resume() }
        }
    }

    private static let shutDown = TransportError(.shutDown, "the transport was shut down")
}

/// The event loops that connections may use: those of SwiftNIO's shared group.
///
/// A host may have other groups, and shut them down.
private enum EventLoops {
    private static let shared = Set(
        SignalMask.blocking { MultiThreadedEventLoopGroup.singleton }
            .makeIterator().map { ObjectIdentifier($0) }
    )

    /// The shared loop that runs the calling thread; nil on another thread.
    static var current: (any EventLoop)? {
        guard let loop = MultiThreadedEventLoopGroup.currentEventLoop,
            shared.contains(ObjectIdentifier(loop))
        else { return nil }
        return loop
    }

    /// A shared loop; the first call starts the threads of all.
    static func any() -> any EventLoop {
        _ = shared
        return MultiThreadedEventLoopGroup.singleton.any()
    }
}
#endif
