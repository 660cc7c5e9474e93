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
            waiting.append(RawConnection.beginConnecting(port: listener.port))
        }
    }

    deinit {
        for descriptor in waiting { close(descriptor) }
    }
}
