import NIOCore
import NIOHTTP1
import NIOPosix
import TieredCache

extension ScriptedOrigin {
    /// Responses are written to the channel itself, because an outbound writer would have to be
    /// finished even if the origin stops before it serves an accepted connection.
    private typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, Never>
    private typealias Listener = NIOAsyncChannel<Connection, Never>

    /// Listens on loopback: on a free port, or after a stop on the previous port.
    ///
    /// - Throws: the error of the system if the socket cannot be bound.
    public func start() async throws {
        let listener = try await listen(on: port)
        let port = listener.channel.localAddress?.port ?? 0
        let server = Task { await self.run(listener) }
        state.withLock { state in
            state.port = port
            state.server = server
        }
    }

    /// Closes every connection and the listening socket; returns when all are closed.
    public func stop() async {
        let server = state.withLock { state in
            defer { state.server = nil }
            return state.server
        }
        server?.cancel()
        await server?.value
        // Connections that were accepted but not served.
        for channel in state.withLock({ Array($0.channels.values) }) {
            channel.close(promise: nil)
            do {
                try await channel.closeFuture.get()
            } catch {
                // The channel is closed, whatever the error.
            }
        }
    }

    private func didOpen(_ channel: any Channel) {
        let number = ObjectIdentifier(channel)
        state.withLock { $0.channels[number] = channel }
        channel.closeFuture.whenComplete { _ in
            _ = self.state.withLock { $0.channels.removeValue(forKey: number) }
        }
    }

    private func listen(on port: Int) async throws -> Listener {
        try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.backlog, value: 256)
            .bind(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    self.didOpen(channel)
                    let decoder = ByteToMessageHandler(HTTPRequestDecoder())
                    try channel.pipeline.syncOperations.addHandler(decoder)
                    return try Connection(wrappingChannelSynchronously: channel)
                }
            }
    }

    private func run(_ listener: Listener) async {
        do {
            try await listener.executeThenClose { connections in
                try await withThrowingDiscardingTaskGroup { group in
                    for try await connection in connections {
                        group.addTask { await self.serve(connection) }
                    }
                }
            }
        } catch {
            // Cancelled by stop(), or the listening socket failed, which requests will show.
        }
    }

    private func serve(_ connection: Connection) async {
        let number = didAccept()
        let channel = connection.channel
        await withTaskCancellationHandler {
            do {
                try await connection.executeThenClose { inbound in
                    await self.serve(inbound, on: channel, number: number)
                }
            } catch {
                // The peer has closed the connection already.
            }
        } onCancel: {
            channel.close(promise: nil)
        }
        didClose()
    }

    /// Serves a connection until its socket is closed: a response that stalls or waits ends with its
    /// client.
    private func serve(
        _ inbound: NIOAsyncChannelInboundStream<HTTPServerRequestPart>,
        on channel: any Channel,
        number: Int
    ) async {
        let serving = Task {
            await OriginConnection(origin: self, number: number, channel: channel).serve(inbound)
        }
        channel.closeFuture.whenComplete { _ in serving.cancel() }
        await serving.value
    }
}
