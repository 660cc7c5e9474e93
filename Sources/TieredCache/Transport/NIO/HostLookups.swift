#if HTTPClient
import DequeModule
import HTTPTransport
import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Looks up the addresses of hosts, each on a thread of its own.
///
/// So no host waits for the name server of another one (invariant 13): SwiftNIO's own resolver has
/// one thread for each event loop. `getaddrinfo` cannot be ended: a lookup goes on to its end when
/// its callers have given up, and later callers for the same host share it.
final class HostLookups: Sendable {
    typealias Addresses = Result<[SocketAddress], HostLookupError>
    /// Finds the addresses of a host; may block.
    typealias LookUp = @Sendable (HostName) -> Addresses

    /// The most lookups at once; further hosts wait for one of them to end.
    static let maximum = 32
    /// Those of all transports of the process.
    static let shared = HostLookups(lookUp: resolve)

    private struct State {
        /// The callers that wait for each host that is being looked up or is to be.
        var callers: [HostName: [EventLoopPromise<[SocketAddress]>]] = [:]
        /// The hosts that no thread has taken yet.
        var waiting = Deque<HostName>()
        var threads = 0
    }

    private let state = Guarded(State())
    private let lookUp: LookUp

    init(lookUp: @escaping LookUp) {
        self.lookUp = lookUp
    }

    /// The addresses of a host, in the order in which they are to be tried.
    func addresses(
        of host: HostName,
        on eventLoop: any EventLoop
    ) -> EventLoopFuture<[SocketAddress]> {
        let promise = eventLoop.makePromise(of: [SocketAddress].self)
        let needsThread = state.withLock { state in
            state.callers[host, default: []].append(promise)
            guard state.callers[host]?.count == 1 else { return false }
            state.waiting.append(host)
            guard state.threads < Self.maximum else { return false }
            state.threads += 1
            return true
        }
        if needsThread, !IOExecutor.startThread(named: "tc-name", body: { self.run() }) {
            // The machine has none left. What the host was asked for has to end all the same.
            end(host, with: .failure(HostLookupError(words: "no thread could be started")))
            didEndThread()
        }
        return promise.futureResult
    }

    private func run() {
        while let host = nextHost() { end(host, with: lookUp(host)) }
    }

    /// The next host for a thread, which ends where there is none.
    private func nextHost() -> HostName? {
        state.withLock { state in
            let host = state.waiting.popFirst()
            if host == nil { state.threads -= 1 }
            return host
        }
    }

    private func didEndThread() {
        state.withLock { $0.threads -= 1 }
    }

    private func end(_ host: HostName, with addresses: Addresses) {
        let callers = state.withLock { state in
            state.waiting.removeAll { $0 == host }
            return state.callers.removeValue(forKey: host) ?? []
        }
        for caller in callers { caller.completeWith(addresses.mapError { $0 }) }
    }

    // MARK: The system

    private static func resolve(_ host: HostName) -> Addresses {
        var hints = addrinfo()
        #if canImport(Glibc)
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
        hints.ai_socktype = SOCK_STREAM
        #endif
        var first: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host.name, String(host.port), &hints, &first)
        guard code == 0 else {
            return .failure(HostLookupError(words: String(cString: gai_strerror(code))))
        }
        defer { freeaddrinfo(first) }
        var addresses: [SocketAddress] = []
        var next = first
        while let entry = next?.pointee {
            if let address = entry.address(of: host.name) { addresses.append(address) }
            next = entry.ai_next
        }
        return .success(addresses)
    }
}

extension addrinfo {
    /// The address; nil for one that is neither IPv4 nor IPv6.
    fileprivate func address(of host: String) -> SocketAddress? {
        let bytes = UnsafeRawPointer(ai_addr)
        return switch ai_family {
        case AF_INET: bytes.map { SocketAddress($0.load(as: sockaddr_in.self), host: host) }
        case AF_INET6: bytes.map { SocketAddress($0.load(as: sockaddr_in6.self), host: host) }
        default: nil
        }
    }
}

/// No addresses were found for a host.
struct HostLookupError: Error, CustomStringConvertible {
    let words: String

    var description: String { words }
}
#endif
