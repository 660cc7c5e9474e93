import AsyncHTTPClient
import Foundation
import Glibc
import TieredCache

/// One client that asks many hosts, in a process that does nothing else.
///
/// A process keeps memory that it had once: of two clients in one process the second would be
/// measured in what the first has left. So the program starts itself for each.
struct HostsProcess: Sendable {
    /// Which client, by its name in the table.
    enum Client: String, CaseIterable, Sendable {
        case transport = "the transport"
        case asyncHTTPClient = "AsyncHTTPClient"
    }

    static let hosts = 1000
    private static let requests = 10 * hosts
    /// Before the client and the port.
    private static let argument = "--ask-hosts"

    private let client: Client
    private let port: Int

    /// - Parameter arguments: those of the process; nil if it was started for something else.
    init?(_ arguments: [String]) {
        guard arguments.count == 4, arguments[1] == Self.argument,
            let client = Client(rawValue: arguments[2]), let port = Int(arguments[3])
        else { return nil }
        self.client = client
        self.port = port
    }

    /// The address of a host: 127.0.1.1 to 127.0.4.250, all of which Linux has on loopback.
    static func address(_ host: Int) -> String { "127.0.\(host / 250 + 1).\(host % 250 + 1)" }

    /// Starts one and waits for its end.
    ///
    /// - Parameters:
    ///   - program: this program.
    ///   - client: which client.
    ///   - port: where all hosts listen.
    /// - Returns: what the process has measured.
    /// - Throws: ``BenchFailure`` if it failed, or why it cannot be started or understood.
    static func start(_ program: String, _ client: Client, port: Int) throws -> HostsRun {
        let output = Pipe()
        let process = try BenchTools.start(
            program,
            [argument, client.rawValue, "\(port)"],
            onCore: BenchTools.clientCore,
            output: output
        )
        let said = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw BenchFailure("\(client.rawValue) has not asked all hosts")
        }
        return try JSONDecoder().decode(HostsRun.self, from: said)
    }

    /// Measures, and writes what it gave to standard output.
    ///
    /// - Throws: why a request failed.
    func run() throws {
        let result = try Blocking.run { try await measure() }
        try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(result))
    }

    private func measure() async throws -> HostsRun {
        let origins = (0..<Self.hosts).map { OriginAddress("http", "\(Self.address($0)):\(port)") }
        // What the process has for any client, code and threads, is there before anything counts.
        try await withClient { try await $0.ask(origins[0]) }
        return try await withClient { try await Self.ask(origins, through: $0) }
    }

    /// Opens a client, and shuts it down after a closure.
    private func withClient<Value>(
        _ body: (OpenClient) async throws -> Value
    ) async throws -> Value {
        let open = OpenClient(client)
        let result: Result<Value, any Error>
        do { result = .success(try await body(open)) } catch { result = .failure(error) }
        try await open.shutDown()
        return try result.get()
    }

    private static func ask(
        _ origins: [OriginAddress],
        through client: OpenClient
    ) async throws -> HostsRun {
        var run = HostsRun()
        run.times.reserveCapacity(requests)
        let descriptors = try countDescriptors()
        let resident = BenchTools.resident(getpid())
        for number in 0..<requests {
            let start = ContinuousClock.now
            try await client.ask(origins[number % origins.count])
            run.times.append(UInt64((ContinuousClock.now - start).nanoseconds))
        }
        run.descriptors = try countDescriptors() - descriptors
        run.resident = BenchTools.resident(getpid()) - resident
        return run
    }

    /// How many the process has open; the one that is used to count is among them each time.
    private static func countDescriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }
}

/// A client as the process uses it.
private struct OpenClient: Sendable {
    let shutDown: @Sendable () async throws -> Void
    private let length: @Sendable (OriginAddress) async throws -> Int

    init(_ client: HostsProcess.Client) {
        switch client {
        case .transport:
            let transport = NIOTransport()
            shutDown = { await transport.shutdown() }
            length = { try await transport.length(of: "/small/", at: $0) }
        case .asyncHTTPClient:
            let peer = HTTPClient(eventLoopGroupProvider: .singleton)
            shutDown = { try await peer.shutdown() }
            length = { try await peer.length(of: "/small/", at: $0) }
        }
    }

    /// Asks a host for 4 KiB and reads them.
    func ask(_ origin: OriginAddress) async throws {
        let count = try await length(origin)
        guard count == 4096 else { throw BenchFailure("a body of \(count) bytes") }
    }
}
