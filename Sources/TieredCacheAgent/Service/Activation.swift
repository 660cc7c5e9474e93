package import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// What systemd gives a service that it starts: sockets that it listens at, and where to report
/// (sd_listen_fds(3), sd_notify(3)).
package struct Activation: Hashable, Sendable {
    /// A descriptor that listens.
    package struct Listener: Hashable, Sendable {
        package let descriptor: CInt
        /// Its path where it is a socket of the file system; nil for a port.
        package let path: FilePath?
    }

    /// In their order.
    package var listeners: [Listener] = []
    /// The address of the service manager's socket; nil for none.
    private var reportAddress: String?

    /// No activation.
    package init() {}

    /// Reads what the environment says, and takes it out of it: no child must believe it.
    ///
    /// - Throws: `Errno` for descriptors that are no sockets of this machine.
    package static func take() throws(Errno) -> Activation {
        var activation = Activation()
        defer { for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsetenv(name) } }
        activation.reportAddress = variable("NOTIFY_SOCKET")
        unsetenv("NOTIFY_SOCKET")
        guard let process = variable("LISTEN_PID").flatMap({ pid_t($0) }), process == getpid(),
            let count = variable("LISTEN_FDS").flatMap({ CInt($0) }), (1...16).contains(count)
        else { return activation }
        for descriptor in 3..<3 + count {
            activation.listeners.append(try listener(descriptor))
        }
        return activation
    }

    private static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }

    private static func listener(_ descriptor: CInt) throws(Errno) -> Listener {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &length)
            }
        }
        guard result == 0 else { throw Errno(rawValue: errno) }
        switch CInt(address.ss_family) {
        case AF_UNIX:
            let path = withUnsafeBytes(of: &address) { bytes in
                bytes.dropFirst(MemoryLayout<sa_family_t>.size).prefix { $0 != 0 }
            }
            return Listener(
                descriptor: descriptor,
                path: FilePath(String(decoding: path, as: UTF8.self))
            )
        case AF_INET:
            let isLoopback = withUnsafeBytes(of: &address) { bytes in
                // The first byte of the address, behind family and port.
                bytes[4] == 127
            }
            guard isLoopback else { throw .addressNotAvailable }
            return Listener(descriptor: descriptor, path: nil)
        default:
            throw .addressFamilyNotSupported
        }
    }

    /// Reports to the service manager, where there is one.
    ///
    /// - Parameter state: such as `READY=1`.
    package func report(_ state: String) {
        guard let reportAddress else { return }
        let descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        // An abstract name begins with a zero byte, which is written as @.
        let isAbstract = reportAddress.hasPrefix("@")
        UnixAddress.with(
            Array((isAbstract ? "\0" + reportAddress.dropFirst() : reportAddress).utf8)
        ) {
            address,
            length in
            let bytes = Array(state.utf8)
            _ = sendto(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL), address, length)
        }
    }
}

/// The address of a socket of the file system.
enum UnixAddress {
    /// Calls `body` with it; not at all where the path is longer than an address may be.
    static func with(
        _ path: [UInt8],
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Void
    ) {
        var address = sockaddr_un()
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard path.count < room else { return }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let start = MemoryLayout<sockaddr_un>.size - room
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(start + path.count + (path.first == 0 ? 0 : 1)))
            }
        }
    }
}
