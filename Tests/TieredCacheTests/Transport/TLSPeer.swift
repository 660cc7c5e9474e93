#if HTTPClient
import NIOCore
import NIOPosix
import NIOSSL

/// A server of TLS on loopback that answers each request head with bytes of its own.
struct TLSPeer: Sendable {
    /// What ends a connection after an answer.
    enum Ending: CaseIterable {
        /// It goes on.
        case none
        /// An orderly end of TLS, and then of the connection.
        case closeNotify
        /// The connection ends, and TLS does not say so.
        case truncation
    }

    /// What the server does.
    struct Behaviour: Sendable {
        var certificate = TLSCredentials.valid
        var version = TLSVersion.tlsv13
        var answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        var ending = Ending.none
    }

    let port: Int
    private let channel: any Channel

    /// Serves while a closure runs.
    static func with<Value>(
        _ behaviour: Behaviour = Behaviour(),
        _ body: (TLSPeer) async throws -> Value
    ) async throws -> Value {
        let peer = try await TLSPeer(behaviour)
        let result: Result<Value, any Error>
        do {
            result = .success(try await body(peer))
        } catch {
            result = .failure(error)
        }
        try await peer.channel.close()
        return try result.get()
    }

    private init(_ behaviour: Behaviour) async throws {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMBytes(
                Array(behaviour.certificate.utf8)
            ).map { .certificate($0) },
            privateKey: .privateKey(
                try NIOSSLPrivateKey(bytes: Array(TLSCredentials.key.utf8), format: .pem)
            )
        )
        configuration.minimumTLSVersion = behaviour.version
        configuration.maximumTLSVersion = behaviour.version
        let context = try NIOSSLContext(configuration: configuration)
        channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers(
                        NIOSSLServerHandler(context: context),
                        Answering(behaviour)
                    )
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        port = channel.localAddress?.port ?? 0
    }

    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let behaviour: Behaviour
        private var head = ""

        init(_ behaviour: Behaviour) {
            self.behaviour = behaviour
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            head += String(buffer: unwrapInboundIn(data))
            guard head.hasSuffix("\r\n\r\n") else { return }
            head = ""
            let answer = ByteBuffer(string: behaviour.answer)
            let (channel, ending) = (context.channel, behaviour.ending)
            context.writeAndFlush(wrapOutboundOut(answer)).whenSuccess {
                switch ending {
                case .none: break
                case .closeNotify: channel.close(promise: nil)
                case .truncation: Self.truncate(channel)
                }
            }
        }

        /// Closes below TLS, which would say goodbye.
        private static func truncate(_ channel: any Channel) {
            do {
                let handler = try channel.pipeline.syncOperations.context(
                    handlerType: NIOSSLServerHandler.self
                )
                handler.close(promise: nil)
            } catch {
                channel.close(promise: nil)
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            // A client that does not trust the certificate says so.
            context.close(promise: nil)
        }
    }
}
#endif
