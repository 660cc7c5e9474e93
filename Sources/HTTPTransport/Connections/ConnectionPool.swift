import NIOCore

/// The connections of one event loop: those that wait for a request, and all that are open.
///
/// A request takes the connection that was used last, and opens one where none waits. Used on the
/// loop alone.
final class ConnectionPool {
    private let eventLoop: any EventLoop
    private let connector: Connector
    private var idle: IdleConnections
    /// All connections, those that are being opened too.
    private var open: [ObjectIdentifier: ConnectionHandler] = [:]
    /// Set once the pool is closed; succeeds when it has no connection.
    private var drained: EventLoopPromise<Void>?

    /// - Parameters:
    ///   - eventLoop: carries the connections.
    ///   - connector: opens them.
    ///   - capacity: how many may wait.
    init(on eventLoop: any EventLoop, connector: Connector, capacity: Int) {
        self.eventLoop = eventLoop
        self.connector = connector
        idle = IdleConnections(capacity: capacity)
    }

    private var isClosed: Bool { drained != nil }

    /// Sends a request; its receiver learns how that ends.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - receiver: takes the response.
    ///   - isAgain: whether a kept connection has ended without a byte for it; it gets a new one.
    func start(
        _ request: OutgoingRequest,
        for receiver: any ResponseReceiver,
        isAgain: Bool = false
    ) {
        guard !isClosed else { return receiver.didFail(.shutDown) }
        if !isAgain, !request.isAlone, let waiting = idle.take(request.peer) {
            return waiting.begin(request, for: receiver)
        }
        do throws(ExchangeError) {
            try connector.connect(
                request.peer,
                within: request.connectTimeout,
                on: eventLoop,
                for: self
            ).assumeIsolated().whenComplete { [self] result in
                switch result {
                case .success(let connection): connection.value.begin(request, for: receiver)
                case .failure(let error):
                    let failure = ExchangeError(error, afterHead: false)
                    receiver.didFail(isClosed ? .shutDown : failure)
                }
            }
        } catch {
            receiver.didFail(error)
        }
    }

    // MARK: Calls of connections

    /// Registers a connection that is about to be opened; false if the pool is closed.
    func didMake(_ connection: ConnectionHandler) -> Bool {
        guard !isClosed else { return false }
        open[ObjectIdentifier(connection)] = connection
        return true
    }

    func didClose(_ connection: ConnectionHandler) {
        idle.remove(connection)
        open[ObjectIdentifier(connection)] = nil
        if open.isEmpty { drained?.succeed() }
    }

    /// Keeps a connection for the next request; false if it has to be closed.
    func giveBack(_ connection: ConnectionHandler) -> Bool {
        guard !isClosed else { return false }
        idle.keep(connection)?.close()
        return true
    }

    // MARK: The end

    /// Closes all connections, and fails the exchanges on them.
    ///
    /// - Returns: succeeds when all are closed.
    func close() -> EventLoopFuture<Void> {
        if let drained { return drained.futureResult }
        let promise = eventLoop.makePromise(of: Void.self)
        drained = promise
        if open.isEmpty { promise.succeed() }
        for connection in Array(open.values) { connection.close() }
        return promise.futureResult
    }
}
