#if os(Linux)
import CLinuxCalls
import Glibc
#endif

/// Watches links and addresses by rtnetlink(7), and by D-Bus whether the network has costs per byte:
/// NetworkManager's `Metered`, or the portal's `GetMetered` where that does not know.
///
/// Needs no privileges, and starts no service. If the kernel refuses, the stream ends at once, which
/// counts as online; without D-Bus, libsystemd or either service it is unknown whether the network
/// is metered. Uses one thread per stream, which checks once a second for a consumer and for what
/// services say. On systems other than Linux the stream is empty.
public struct RouteMonitor: NetworkMonitor {
    /// Creates a monitor; nothing is watched yet.
    public init() {}

    /// The current status, then every change and every lost address.
    public func events() -> AsyncStream<NetworkEvent> {
        #if os(Linux)
        AsyncStream(bufferingPolicy: .bufferingNewest(256)) { continuation in
            let executor = IOExecutor(threads: 1, name: "tc-route")
            let task = Task(executorPreference: executor) {
                RouteWatch(continuation).run()
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
        #else
        AsyncStream { $0.finish() }
        #endif
    }
}

extension MediaCache.Configuration {
    /// The monitor of this platform: ``RouteMonitor`` on Linux, `PathMonitor` on Apple platforms.
    public static var defaultNetworkMonitor: (any NetworkMonitor)? {
        #if os(Linux)
        RouteMonitor()
        #elseif canImport(Network)
        PathMonitor()
        #else
        nil
        #endif
    }
}

#if os(Linux)
/// Reads the kernel's messages on one thread.
private struct RouteWatch {
    private let continuation: AsyncStream<NetworkEvent>.Continuation
    private var table = RouteTable()
    private var isComplete = false
    private var lastStatus: NetworkStatus?
    private let metered = MeteredWatch()

    init(_ continuation: AsyncStream<NetworkEvent>.Continuation) {
        self.continuation = continuation
    }

    /// Returns when the task is cancelled or the kernel refuses.
    consuming func run() {
        var watch = self
        let socket = tc_route_open()
        guard socket >= 0 else { return }
        defer { close(socket) }
        guard watch.askAll(socket) else { return }
        // The first status is to be whole; a service that hangs does not hold it for longer.
        watch.metered.settle(within: .seconds(1))
        let capacity = 256
        let events = UnsafeMutablePointer<tc_route_event>.allocate(capacity: capacity)
        defer { events.deallocate() }
        while !Task.isCancelled {
            let count = tc_route_read(socket, 1000, events, Int32(capacity))
            guard count >= 0,
                watch.take(UnsafeBufferPointer(start: events, count: Int(count)), from: socket)
            else { return }
            watch.metered.process()
            watch.report()
        }
    }

    /// Requests all links; their end requests all addresses, as one dump must end before the next.
    private mutating func askAll(_ socket: Int32) -> Bool {
        isComplete = false
        asked = 0
        return tc_route_ask(socket, 0) == 0
    }

    private var asked = 0

    private mutating func take(
        _ events: UnsafeBufferPointer<tc_route_event>,
        from socket: Int32
    ) -> Bool {
        for event in events {
            switch event.kind {
            case TC_ROUTE_OVERRUN:
                // Messages were lost: the table is out of date.
                table = RouteTable()
                guard askAll(socket) else { return false }
            case TC_ROUTE_DONE:
                asked += 1
                if asked == 1 {
                    guard tc_route_ask(socket, 1) == 0 else { return false }
                } else {
                    isComplete = true
                }
            default:
                guard let message = RouteTable.Message(event) else { continue }
                for address in table.didReceive(message) {
                    continuation.yield(.lostAddress(address))
                }
            }
        }
        return true
    }

    private mutating func report() {
        let status = NetworkStatus(isOnline: table.isOnline, isMetered: metered.isMetered)
        guard isComplete, status != lastStatus else { return }
        lastStatus = status
        continuation.yield(.status(status))
    }
}

extension RouteTable.Message {
    fileprivate init?(_ event: tc_route_event) {
        let (link, isUsable) = (Int(event.link), event.usable != 0)
        let text = withUnsafeBytes(of: event.address) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        switch event.kind {
        case TC_ROUTE_LINK: self = .link(link, isUsable: isUsable)
        case TC_ROUTE_LINK_GONE: self = .linkGone(link)
        case TC_ROUTE_ADDRESS: self = .address(text, link: link, isUsable: isUsable)
        case TC_ROUTE_ADDRESS_GONE: self = .addressGone(text, link: link)
        default: return nil
        }
    }
}
#endif
