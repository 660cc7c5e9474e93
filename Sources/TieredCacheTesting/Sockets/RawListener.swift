#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A blocking listener on a free loopback port, for tests that act as an origin byte by byte.
package final class RawListener: Sendable {
    private let descriptor: Int32

    /// The port of the listener.
    package let port: Int

    /// Starts to listen.
    ///
    /// - Parameter backlog: the most connections waiting to be accepted; nil to reserve the port
    ///   and refuse all connections.
    /// - Throws: the error of the system.
    package init(backlog: Int32? = 128) throws(RawConnection.Failure) {
        descriptor = socket(AF_INET, Int32(streamSocket), 0)
        guard descriptor >= 0 else { throw .init(call: "socket", errno: errno) }
        guard let port = Self.bindAndListen(descriptor, backlog: backlog) else {
            let failure = RawConnection.Failure(call: "bind", errno: errno)
            _ = Self.closeDescriptor(descriptor)
            throw failure
        }
        self.port = port
    }

    deinit {
        _ = Self.closeDescriptor(descriptor)
    }

    /// Waits for a client; returns nil once ``stop()`` was called.
    package func accept() -> RawConnection? {
        acceptDescriptor().map { RawConnection(descriptor: $0) }
    }

    /// Waits for a client, whose descriptor the caller closes; returns nil once ``stop()`` was
    /// called.
    package func acceptDescriptor() -> Int32? {
        let client = acceptClient(descriptor)
        return client >= 0 ? client : nil
    }

    /// Ends present and later calls of ``accept()``.
    package func stop() {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    private static func bindAndListen(_ descriptor: Int32, backlog: Int32?) -> Int? {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(descriptor, generic, size) == 0
                    && (backlog.map { listen(descriptor, $0) } ?? 0) == 0
                    && getsockname(descriptor, generic, &size) == 0
            }
        }
        return isBound ? Int(in_port_t(bigEndian: address.sin_port)) : nil
    }

    private static func closeDescriptor(_ descriptor: Int32) -> Int32 { close(descriptor) }
}

#if canImport(Glibc)
private let streamSocket = SOCK_STREAM.rawValue
#else
private let streamSocket = SOCK_STREAM
#endif

// The class's own name hides the function from its methods.
private func acceptClient(_ descriptor: Int32) -> Int32 { accept(descriptor, nil, nil) }
