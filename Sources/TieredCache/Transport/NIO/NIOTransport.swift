#if HTTPClient
import CLinuxCalls
import HTTPTransport
import HTTPTypes
import NIOCore
import NIOPosix
public import SystemPackage

/// The transport on SwiftNIO: HTTP/1.1, one hop, bytes only as fast as they are read.
///
/// Connections are kept alive for 60 s and shared by all requests of this transport. A request that
/// must not be sent twice, or has content, gets a connection of its own, which is closed after it:
/// an origin that does not read the content of a GET takes it for the next request. A GET or HEAD
/// whose kept connection ends before a byte of the response is sent once more, on a new one. A
/// request from an event loop of SwiftNIO's shared group stays on that loop; from elsewhere, all
/// requests to one origin share a loop.
///
/// The number of connections is not limited here: the engine's queues limit running requests.
public final class NIOTransport: Transport, CancellableTransport {
    private enum State {
        /// No event loop is used before the first request.
        case unused
        case used(HTTPConnections)
        case shutDown(HTTPConnections?)
    }

    private let additionalTrustRoots: [FilePath]
    private let lookups: HostLookups
    private let state = Guarded(State.unused)

    /// Creates a transport; no connection is made before the first request.
    ///
    /// - Parameter additionalTrustRoots: PEM files with certificates that are trusted beside those
    ///   of the system. As long as one cannot be read, every `https` request fails with
    ///   ``TransportError/Kind/tls``.
    public convenience init(additionalTrustRoots: [FilePath] = []) {
        self.init(additionalTrustRoots: additionalTrustRoots, lookups: .shared)
    }

    init(additionalTrustRoots: [FilePath] = [], lookups: HostLookups) {
        self.additionalTrustRoots = additionalTrustRoots
        self.lookups = lookups
    }

    deinit {
        close()
    }

    /// Sends `request` and returns when the final response's head has arrived.
    ///
    /// - Parameter request: The request; a `Host` field in it overrides the authority.
    /// - Returns: The head, and the body still in the socket.
    /// - Throws: ``TransportError``; ``TransportError/Kind/invalidRequest`` if a byte in the
    ///   request would break its framing.
    public func send(
        _ request: TransportRequest
    ) async throws(TransportError) -> TransportResponse {
        // An earlier cancellation wins over any response (invariant 11).
        guard !Task.isCancelled else {
            throw TransportError(.cancelled, "the task was cancelled")
        }
        let outgoing = try OutgoingRequest(request)
        let connections = try connections()
        let exchange = Exchange(onInterim: request.onInterim)
        request.onStart?({ exchange.cancel() })
        connections.start(outgoing, for: exchange)
        return try await exchange.response()
    }

    private func connections() throws(TransportError) -> HTTPConnections {
        try state.withLock { state throws(TransportError) in
            switch state {
            case .used(let connections): return connections
            case .shutDown: throw TransportError(ExchangeError.shutDown)
            case .unused:
                let connections = HTTPConnections(
                    on: EventLoops.shared,
                    services: .ofProcess(lookups),
                    additionalTrustRoots: additionalTrustRoots.map(\.string)
                )
                state = .used(connections)
                return connections
            }
        }
    }

    /// Closes idle connections, fails running exchanges and refuses new ones.
    public func shutdown() async {
        for closed in close() {
            // It cannot fail.
            await withCheckedContinuation { continuation in
                closed.whenComplete { _ in continuation.resume() }
            }
        }
    }

    @discardableResult
    private func close() -> [EventLoopFuture<Void>] {
        let connections = state.withLock { state in
            switch state {
            case .unused: state = .shutDown(nil)
            case .used(let connections): state = .shutDown(connections)
            case .shutDown: break
            }
            guard case .shutDown(let connections) = state else { return nil as HTTPConnections? }
            return connections
        }
        return connections?.close() ?? []
    }
}

/// The event loops that connections may use: those of SwiftNIO's shared group.
///
/// A host may have other groups, and shut them down.
private enum EventLoops {
    /// The first use starts the threads of all.
    static let shared = SignalMask.blocking {
        Array(MultiThreadedEventLoopGroup.singleton.makeIterator())
    }
}

extension ProcessServices {
    fileprivate static func ofProcess(_ lookups: HostLookups) -> ProcessServices {
        ProcessServices(
            addresses: { lookups.addresses(of: $0, on: $1) },
            startThread: { IOExecutor.startThread(named: "tc-trust", body: $0) },
            // Higher descriptors are reserved for the runtime, which aborts the process without any.
            mayKeep: { tc_may_keep_socket($0) }
        )
    }
}
#endif
