#if HTTPClient
import CLinuxCalls
import Glibc
import HTTPTransport
import NIOCore
import TestParts
import Testing

@testable import TieredCache

/// A thousand exchanges on one transport at once, each with an origin of its own that is silent in
/// the middle of its response.
@Suite("Transport: many slow origins", .tags(.realTime), .timeLimit(.minutes(10)))
struct TransportScaleTests {
    /// Exchanges that are under way, all with the first byte of their heads.
    private struct Waiting {
        let origin: SlowOrigin
        let transport: NIOTransport
        let exchanges: [(authority: String, task: Task<String, any Error>)]

        /// Sends what brings all exchanges there.
        func goOn(to place: Place) async throws {
            guard place == .body else { return }
            try await origin.send(1..<origin.length - 1)
        }
    }

    /// Where the exchanges wait.
    enum Place: CaseIterable {
        case head, body
    }

    @Test("All bodies come byte for byte in turns, and a quick origin is not waited for meanwhile")
    func turns() async throws {
        let quick = RawPeer { connection in
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
        }
        try await Self.whileAllWait { waiting in
            for position in 1..<waiting.origin.length {
                // None of the others can end before.
                let request = TransportCase.request(quick.authority)
                let body = try await TransportCase.collect(waiting.transport.send(request).body)
                #expect(body == Array("ok".utf8))
                try await waiting.origin.send(position..<position + 1)
            }
            for (authority, task) in waiting.exchanges {
                let body = try await task.value
                #expect(body == authority)
            }
        }
    }

    @Test("Each can be cancelled, which closes its connection", arguments: Place.allCases)
    func cancelled(place: Place) async throws {
        try await Self.whileAllWait { waiting in
            try await waiting.goOn(to: place)
            for (_, task) in waiting.exchanges { task.cancel() }
            for (authority, task) in waiting.exchanges {
                let failure = await Self.failure(of: task)
                #expect(failure == .cancelled, "\(authority)")
            }
            await waiting.origin.waitForCloses(waiting.exchanges.count)
        }
    }

    @Test("A shutdown ends all, and returns", arguments: Place.allCases)
    func shutdown(place: Place) async throws {
        try await Self.whileAllWait { waiting in
            try await waiting.goOn(to: place)
            await waiting.transport.shutdown()
            for (authority, task) in waiting.exchanges {
                let failure = await Self.failure(of: task)
                #expect(failure == .shutDown || failure == .cancelled, "\(authority)")
            }
            await waiting.origin.waitForCloses(waiting.exchanges.count)
        }
    }

    // MARK: The exchanges

    /// Begins a thousand exchanges, and runs a closure once all of them are under way.
    private static func whileAllWait(
        _ body: (Waiting) async throws -> Void
    ) async throws {
        try await DescriptorLimit.raised {
            try await SlowOrigin.with { origin in
                let transport = NIOTransport(lookups: loopback())
                let result: Result<Void, any Error>
                do {
                    let waiting = begin(DescriptorLimit.room(for: 1000), origin, transport)
                    try await origin.waitForRequests(waiting.exchanges.count)
                    try await body(waiting)
                    result = .success(())
                } catch {
                    result = .failure(error)
                }
                await transport.shutdown()
                try result.get()
            }
        }
    }

    private static func begin(
        _ count: Int,
        _ origin: SlowOrigin,
        _ transport: NIOTransport
    ) -> Waiting {
        // Names of one length, so that all are at the same byte.
        let exchanges = (1000..<1000 + count).map { number in
            let authority = "host\(number).test:\(origin.port)"
            let task: Task<String, any Error> = Task {
                try await Self.body(of: authority, origin, transport)
            }
            return (authority: authority, task: task)
        }
        return Waiting(origin: origin, transport: transport, exchanges: exchanges)
    }

    private static func body(
        of authority: String,
        _ origin: SlowOrigin,
        _ transport: NIOTransport
    ) async throws -> String {
        do {
            let response = try await transport.send(
                TransportCase.request(authority, connectTimeout: .seconds(300))
            )
            let body = try await TransportCase.collect(response.body)
            return String(decoding: body, as: UTF8.self)
        } catch {
            origin.giveUp(error)
            throw error
        }
    }

    private static func failure(of task: Task<String, any Error>) async -> TransportError.Kind? {
        switch await task.result {
        case .success: nil
        case .failure(let error): (error as? TransportError)?.kind
        }
    }

    /// Each host is the loopback.
    private static func loopback() -> HostLookups {
        HostLookups { host in
            do {
                return .success([try SocketAddress(ipAddress: "127.0.0.1", port: host.port)])
            } catch {
                return .failure(HostLookupError(words: "\(error)"))
            }
        }
    }
}

/// How many descriptors the process may have.
private enum DescriptorLimit {
    /// Runs a closure with as many as the system allows.
    static func raised<Value>(_ body: () async throws -> Value) async throws -> Value {
        var before = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before) == 0 else {
            return try await body()
        }
        defer { setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before) }
        tc_raise_descriptor_limit()
        return try await body()
    }

    /// How many exchanges, at most `count`, have room with both ends of their connections.
    static func room(for count: Int) -> Int {
        var count = count
        while count > 1, !isFree(2 * count + 128) { count /= 2 }
        return count
    }

    private static func isFree(_ descriptors: Int) -> Bool {
        tc_try_descriptors(Int32(descriptors)) == 0 && tc_may_keep_socket(Int32(descriptors))
    }
}
#endif
