package import NIOCore
import NIOPosix

/// The connections of a transport: a pool for each event loop.
///
/// An exchange belongs to one loop from its beginning to its end. That is the loop of the caller, so
/// that it changes no thread; where none runs the caller, all requests to a peer share one loop, so
/// that they share its connections.
package final class HTTPConnections: Sendable {
    /// The most connections that wait for a request, on all loops.
    package static let capacity = 256
    /// The least that may wait on each of many loops: all requests to a peer may share one.
    private static let minimumCapacity = 16

    private let pools: [NIOLoopBoundBox<ConnectionPool>]
    private let numbers: [ObjectIdentifier: Int]

    /// Opens no connection.
    ///
    /// - Parameters:
    ///   - eventLoops: carry the connections; at least one.
    ///   - services: what is asked of the process.
    ///   - additionalTrustRoots: paths of PEM files with certificates that are trusted beside those
    ///     of the system. They are read for the first connection that needs them.
    package init(
        on eventLoops: [any EventLoop],
        services: ProcessServices,
        additionalTrustRoots: [String]
    ) {
        let security = ConnectionSecurity(
            additionalTrustRoots: additionalTrustRoots,
            services: services,
            home: eventLoops[0]
        )
        let capacity = max(Self.minimumCapacity, Self.capacity / eventLoops.count)
        pools = eventLoops.map { eventLoop in
            let connector = Connector(services: services, security: security)
            return NIOLoopBoundBox.makeBoxSendingValue(
                ConnectionPool(on: eventLoop, connector: connector, capacity: capacity),
                eventLoop: eventLoop
            )
        }
        let identities = eventLoops.map { ObjectIdentifier($0) }
        numbers = Dictionary(uniqueKeysWithValues: zip(identities, eventLoops.indices))
    }

    /// Sends a request; its receiver learns how that ends.
    package func start(_ request: OutgoingRequest, for receiver: any ResponseReceiver) {
        if let here = MultiThreadedEventLoopGroup.currentEventLoop,
            let number = numbers[ObjectIdentifier(here)]
        {
            return pools[number].value.start(request, for: receiver)
        }
        let pool = pools[Int(UInt(bitPattern: request.peer.hashValue) % UInt(pools.count))]
        pool.eventLoop.execute { pool.value.start(request, for: receiver) }
    }

    /// Closes all connections, fails the exchanges on them and refuses new ones.
    ///
    /// - Returns: one for each loop; succeeds when its connections are closed.
    @discardableResult
    package func close() -> [EventLoopFuture<Void>] {
        pools.map { pool in pool.eventLoop.flatSubmit { pool.value.close() } }
    }
}
