import TieredCache
import TieredCacheTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A port whose queue of connections is full, so that a further one is neither made nor refused.
final class SaturatedListener {
    private let listener: RawListener
    private var waiting: [Int32] = []

    var port: Int { listener.port }

    init() throws {
        listener = try RawListener(backlog: 0)
        // One more than the queue holds stays half open; any further one waits for its place.
        for _ in 0..<4 {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            waiting.append(descriptor)
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(truncatingIfNeeded: listener.port).bigEndian
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    _ = connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
    }

    deinit {
        for descriptor in waiting { close(descriptor) }
    }
}
