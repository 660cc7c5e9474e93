#if HTTPClient
import NIOCore
import NIOPosix
import NIOSSL
import SystemPackage

/// What connections of TLS trust, read from the disk once, on a thread that may wait for it.
///
/// What could not be read is read again for the next connection: descriptors or memory may have been
/// short.
final class ConnectionSecurity: Sendable {
    private let additionalTrustRoots: [FilePath]
    private let context = Guarded<EventLoopFuture<NIOSSLContext>?>(nil)

    init(additionalTrustRoots: [FilePath]) {
        self.additionalTrustRoots = additionalTrustRoots
    }

    /// The context of all connections; those that wait for one attempt to make it share its error.
    func context(on eventLoop: any EventLoop) -> EventLoopFuture<NIOSSLContext> {
        let (context, isNew) = context.withLock { context in
            if let context { return (context, false) }
            let made = SignalMask.blocking { [additionalTrustRoots] in
                NIOThreadPool.singleton.runIfActive(eventLoop: eventLoop) {
                    try Self.makeContext(additionalTrustRoots)
                }
            }
            context = made
            return (made, true)
        }
        if isNew { context.whenFailure { [self] _ in forget(context) } }
        return context.hop(to: eventLoop)
    }

    private func forget(_ failed: EventLoopFuture<NIOSSLContext>) {
        context.withLock { if $0 === failed { $0 = nil } }
    }

    private static func makeContext(_ additionalTrustRoots: [FilePath]) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.additionalTrustRoots = additionalTrustRoots.map { .file($0.string) }
        configuration.applicationProtocols = ["http/1.1"]
        return try NIOSSLContext(configuration: configuration)
    }
}
#endif
