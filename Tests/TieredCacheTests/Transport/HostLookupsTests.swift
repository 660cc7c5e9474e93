#if HTTPClient
import Dispatch
import HTTPTransport
import HTTPTypes
import NIOCore
import NIOPosix
import Synchronization
import TestParts
import Testing

@testable import TieredCache

/// Names of hosts: whose name server is silent is waited for by nobody else.
@Suite("Transport: names of hosts", .tags(.realTime), .timeLimit(.minutes(1)))
struct HostLookupsTests {
    /// Lookups of which those of `silent` hosts end only when they may.
    private final class Names: Sendable {
        private let mayEnd = DispatchSemaphore(value: 0)
        private let count = Atomic<Int>(0)

        var lookups: Int { count.load(ordering: .sequentiallyConsistent) }

        func make() -> HostLookups {
            HostLookups { host in
                self.count.add(1, ordering: .sequentiallyConsistent)
                if host.name.hasPrefix("silent") { self.mayEnd.wait() }
                do {
                    return .success([try SocketAddress(ipAddress: "127.0.0.1", port: host.port)])
                } catch {
                    return .failure(HostLookupError(words: "\(error)"))
                }
            }
        }

        func end(_ count: Int) {
            for _ in 0..<count { mayEnd.signal() }
        }
    }

    @Test("A request goes out while the names of other hosts are being waited for")
    func silentHosts() async throws {
        let peer = RawPeer { connection in
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        let names = Names()
        let transport = NIOTransport(lookups: names.make())
        let silent = (0..<20).map { number in
            Task {
                try await transport.send(TransportCase.request("silent\(number).test:\(peer.port)"))
            }
        }
        while names.lookups < silent.count { await Task.yield() }
        let response = try await transport.send(
            TransportCase.request("found.test:\(peer.port)")
        )
        #expect(try await TransportCase.collect(response.body) == Array("ok".utf8))
        names.end(silent.count)
        for request in silent { #expect(try await request.value.head.status == .ok) }
        await transport.shutdown()
    }

    @Test("One lookup serves all that ask for a host meanwhile, and the next one is a new one")
    func shared() async throws {
        let names = Names()
        let lookups = names.make()
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let host = HostName(name: "silent.test", port: 80)
        let answers = (0..<5).map { _ in lookups.addresses(of: host, on: loop) }
        names.end(1)
        for answer in answers { #expect(try await answer.get().count == 1) }
        #expect(names.lookups == 1)
        names.end(1)
        #expect(try await lookups.addresses(of: host, on: loop).get().count == 1)
        #expect(names.lookups == 2)
    }

    @Test("Lookups beyond the most at once wait for one of them to end")
    func most() async throws {
        let names = Names()
        let lookups = names.make()
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let silent = (0..<HostLookups.maximum).map { number in
            let host = HostName(name: "silent\(number).test", port: 80)
            return lookups.addresses(of: host, on: loop)
        }
        while names.lookups < silent.count { await Task.yield() }
        let late = lookups.addresses(of: HostName(name: "found.test", port: 80), on: loop)
        #expect(names.lookups == silent.count)
        names.end(1)
        #expect(try await late.get().count == 1)
        names.end(silent.count - 1)
        for answer in silent { _ = try await answer.get() }
    }

    @Test("The system finds both families of the loopback, and says why it finds no other host")
    func system() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let found = try await HostLookups.shared.addresses(
            of: HostName(name: "localhost", port: 81),
            on: loop
        ).get()
        #expect(found.contains { $0.ipAddress == "127.0.0.1" && $0.port == 81 })
        let none = HostLookups.shared.addresses(
            of: HostName(name: "a..invalid", port: 81),
            on: loop
        )
        await #expect(throws: HostLookupError.self) { try await none.get() }
    }
}
#endif
