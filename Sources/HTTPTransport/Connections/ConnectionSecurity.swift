import NIOCore
import NIOSSL

/// What connections of TLS trust, read from the disk once, on a thread that may wait for it.
///
/// What could not be read is read again for the next connection: descriptors or memory may have been
/// short.
final class ConnectionSecurity: Sendable {
    private let additionalTrustRoots: [String]
    private let services: ProcessServices
    /// The context of all loops, on one of them.
    private let context: NIOLoopBoundBox<EventLoopFuture<NIOSSLContext>?>

    /// - Parameters:
    ///   - additionalTrustRoots: paths of PEM files.
    ///   - services: starts the thread.
    ///   - home: the loop that keeps the context.
    init(additionalTrustRoots: [String], services: ProcessServices, home: any EventLoop) {
        self.additionalTrustRoots = additionalTrustRoots
        self.services = services
        context = .makeEmptyBox(eventLoop: home)
    }

    /// The context of all connections; those that wait for one attempt to make it share its error.
    func context(on eventLoop: any EventLoop) -> EventLoopFuture<NIOSSLContext> {
        context.eventLoop.flatSubmit { [self] in context.value ?? make() }.hop(to: eventLoop)
    }

    private func make() -> EventLoopFuture<NIOSSLContext> {
        let promise = context.eventLoop.makePromise(of: NIOSSLContext.self)
        let hasThread = services.startThread { [additionalTrustRoots] in
            promise.completeWith(Result { try Self.makeContext(additionalTrustRoots) })
        }
        if !hasThread { promise.fail(NoThread()) }
        context.value = promise.futureResult
        promise.futureResult.whenFailure { [self] _ in context.value = nil }
        return promise.futureResult
    }

    private static func makeContext(_ additionalTrustRoots: [String]) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.additionalTrustRoots = additionalTrustRoots.map { .file($0) }
        configuration.applicationProtocols = ["http/1.1"]
        // What the peer answers to the end of TLS changes nothing any more; meanwhile the socket
        // stays, and takes what still comes.
        configuration.shutdownTimeout = .milliseconds(500)
        return try NIOSSLContext(configuration: configuration)
    }
}

/// The machine has no thread left.
struct NoThread: Error, CustomStringConvertible {
    var description: String { "no thread could be started" }
}
