#if HTTPClient
import AsyncHTTPClient
import CLinuxCalls
import HTTPCaching
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The library's clients: one for each connect timeout in use, usually one, and one more for
/// requests that must not use a connection that the origin is about to close.
///
/// The library has a connect timeout per client, the engine one per request.
final class AsyncHTTPClientPool: Sendable {
    private struct State {
        var clients: [(connectTimeout: Duration, isFresh: Bool, client: HTTPClient)] = []
        var isShutDown = false
    }

    /// The maximum number of clients; further timeouts share the client of the closest shorter one.
    private static let maximumClients = 8

    let templates = RequestTemplates()
    private let additionalTrustRoots: [FilePath]
    private let state = Guarded(State())

    init(additionalTrustRoots: [FilePath]) {
        self.additionalTrustRoots = additionalTrustRoots
    }

    var isShutDown: Bool { state.withLock { $0.isShutDown } }

    /// A client to send a request with.
    ///
    /// - Parameters:
    ///   - connectTimeout: the maximum wait for a connection.
    ///   - isFresh: whether the connection must not have been idle: if the origin closes it at that
    ///     moment, the request gets no response, and not every request can be repeated (RFC 9110
    ///     §9.2.2).
    /// - Returns: the client.
    /// - Throws: `.shutDown`.
    func client(
        connectTimeout: Duration,
        isFresh: Bool = false
    ) throws(TransportError) -> HTTPClient {
        // The client is made under the lock: that takes no system call, and a second one made
        // outside could win the race and would have to be shut down again.
        try state.withLock { state throws(TransportError) in
            guard !state.isShutDown else {
                throw TransportError(.shutDown, "the transport was shut down")
            }
            let found = state.clients.first {
                $0.connectTimeout == connectTimeout && $0.isFresh == isFresh
            }
            if let found { return found.client }
            let alike = state.clients.count { $0.isFresh == isFresh }
            guard alike < Self.maximumClients else {
                let clients = state.clients.filter { $0.isFresh == isFresh }
                let shorter = clients.filter { $0.connectTimeout < connectTimeout }
                let closest = (shorter.isEmpty ? clients : shorter)
                    .max { $0.connectTimeout < $1.connectTimeout }
                guard let closest else {
                    throw TransportError(.connect, "no client for this connect timeout")
                }
                return closest.client
            }
            // The first client starts the threads of the event loops.
            let client = SignalMask.blocking {
                HTTPClient(
                    eventLoopGroupProvider: .singleton,
                    configuration: configuration(connectTimeout: connectTimeout, isFresh: isFresh)
                )
            }
            state.clients.append((connectTimeout, isFresh, client))
            return client
        }
    }

    func shutDown() async {
        for client in close() {
            do {
                try await client.shutdown()
            } catch {
                // Only a second shutdown fails, and `close` returns each client once.
                assertionFailure("shutdown failed: \(error)")
            }
        }
    }

    /// For `deinit`: the library requires a shutdown, which cannot be awaited there.
    func shutDownInBackground() {
        let clients = close()
        guard !clients.isEmpty else { return }
        for client in clients {
            // The type selects the overload that does not wait.
            let _: EventLoopFuture<Void> = client.shutdown()
        }
    }

    private func close() -> [HTTPClient] {
        state.withLock { state in
            let clients = state.clients.map(\.client)
            state.clients = []
            state.isShutDown = true
            return clients
        }
    }

    private func configuration(
        connectTimeout: Duration,
        isFresh: Bool
    ) -> HTTPClient.Configuration {
        var configuration = HTTPClient.Configuration(
            redirectConfiguration: .disallow,
            // No read timeout: the library's goes on while a reader pauses. `DownloadWatchdog` has
            // ours.
            timeout: .init(
                connect: .nanoseconds(max(1, connectTimeout.saturatedNanoseconds))
            ),
            decompression: .disabled
        )
        // async-http-client#922 (a crash at RST_STREAM) and #660 (a hang at GOAWAY) are open.
        configuration.httpVersion = .http1Only
        // The library's own spans carry whole URLs, secrets in the query too, and begin on an event
        // loop, which knows nothing of the request that they belong to. An observer makes ours.
        configuration.tracing.tracer = nil
        // Otherwise a refused connection shows only after the connect timeout.
        configuration.connectionPool.retryConnectionEstablishment = false
        if isFresh { configuration.connectionPool.idleTimeout = .milliseconds(1) }
        // The request queue limits running requests; the pool must never make a request wait.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 4096
        // The only way that the library offers to the pipeline of its connections.
        configuration.http1_1ConnectionDebugInitializer = { $0.prepareForOurRequests() }
        if !additionalTrustRoots.isEmpty {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.additionalTrustRoots = additionalTrustRoots.map { .file($0.string) }
            configuration.tlsConfiguration = tls
        }
        return configuration
    }
}

extension Channel {
    /// Installs the handlers, and lets one read take up to 256 KiB from the socket.
    fileprivate func prepareForOurRequests() -> EventLoopFuture<Void> {
        let channel = self
        return eventLoop.submit {
            let pipeline = channel.pipeline.syncOperations
            // Higher descriptors are reserved for the runtime, which aborts the process without
            // any.
            let isKept = try pipeline.withUnsafeTransportIfAvailable(
                of: NIOBSDSocket.Handle.self
            ) { tc_may_keep_socket($0) }
            guard isKept != false else {
                throw IOError(errnoCode: EMFILE, reason: "too many open files")
            }
            let encoder = try pipeline.handler(type: HTTPRequestEncoder.self)
            try pipeline.addHandler(RequestTargetWriter(), position: .after(encoder))
            try pipeline.addHandler(LastPartDelay(), position: .after(encoder))
            let decoder = try pipeline.handler(
                type: ByteToMessageHandler<HTTPResponseDecoder>.self
            )
            try pipeline.addHandler(ResponseReader(), position: .after(decoder))
        }.flatMap {
            channel.setOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(
                    minimum: 16 << 10,
                    initial: 64 << 10,
                    maximum: 256 << 10
                )
            )
        }
    }
}
#endif
