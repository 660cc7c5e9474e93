package import NIOCore

/// What a transport asks of its process, which knows its threads and its descriptors.
package struct ProcessServices: Sendable {
    /// Finds the addresses of a host, in the order in which they are to be tried.
    let addresses: @Sendable (HostName, any EventLoop) -> EventLoopFuture<[SocketAddress]>
    /// Starts a thread, which may wait for disks; false if the machine has none left.
    let startThread: @Sendable (@escaping @Sendable () -> Void) -> Bool
    /// Whether a socket that has just been opened may stay open.
    let mayKeep: @Sendable (NIOBSDSocket.Handle) -> Bool

    package init(
        addresses:
            @escaping @Sendable (HostName, any EventLoop) -> EventLoopFuture<
                [SocketAddress]
            >,
        startThread: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool,
        mayKeep: @escaping @Sendable (NIOBSDSocket.Handle) -> Bool
    ) {
        self.addresses = addresses
        self.startThread = startThread
        self.mayKeep = mayKeep
    }
}

/// A host and a port, whose addresses are to be found.
package struct HostName: Hashable, Sendable {
    package let name: String
    package let port: Int

    package init(name: String, port: Int) {
        self.name = name
        self.port = port
    }
}
