import FoundationEssentials
import SystemPackage
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheAgent

/// An agent before a scripted origin, asked at its real socket.
final class AgentFixture: Sendable {
    let origin: ScriptedOrigin
    let files: TemporaryDirectory
    private let current: Guarded<AgentService?>
    private let change: @Sendable (inout AgentService.Settings) -> Void

    private init(
        origin: ScriptedOrigin,
        files: TemporaryDirectory,
        change: @escaping @Sendable (inout AgentService.Settings) -> Void
    ) {
        self.origin = origin
        self.files = files
        self.change = change
        current = Guarded(nil)
    }

    /// Runs `body` with an agent; it is stopped afterwards.
    static func run(
        _ change: @escaping @Sendable (inout AgentService.Settings) -> Void = { _ in },
        _ body: (AgentFixture) async throws -> Void
    ) async throws {
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("tieredcache-agent")
        let fixture = AgentFixture(origin: origin, files: files, change: change)
        do {
            try await fixture.start()
            try await body(fixture)
        } catch {
            await fixture.stop()
            await origin.stop()
            throw error
        }
        await fixture.stop()
        await origin.stop()
    }

    /// Starts an agent in the directory.
    func start() async throws {
        var configuration = MediaCache.Configuration(path: files.appending("cache"))
        configuration.minimumFreeDisk = 0
        configuration.respondsToMemoryPressure = false
        configuration.retries = 1
        configuration.timeout = .seconds(300)
        var settings = AgentService.Settings(socket: files.appending("socket"))
        settings.options = DownloadOptions(["dir": files.appending("out").string])
        change(&settings)
        let service = try await AgentService.start(configuration, settings: settings)
        current.withLock { $0 = service }
    }

    /// Ends the agent, as SIGTERM does.
    func stop() async { await current.withLock { $0.take() }?.stop() }

    var service: AgentService {
        get throws { try #require(current.withLock { $0 }) }
    }

    /// Calls a method over the socket.
    func call(_ method: String, _ parameters: JSONValue...) async throws -> JSONValue {
        let client = AgentClient(socket: files.appending("socket"))
        return try await IOExecutor(threads: 1, name: "test-client").run {
            try client.call(method, parameters)
        }
    }

    /// The error of a method.
    func refusal(_ method: String, _ parameters: JSONValue...) async throws -> RPCError? {
        try await refusal(method, list: parameters)
    }

    func refusal(_ method: String, list parameters: [JSONValue]) async throws -> RPCError? {
        let client = AgentClient(socket: files.appending("socket"))
        let failure = await #expect(throws: AgentClient.Failure.self) {
            try await IOExecutor(threads: 1, name: "test-client").run {
                try client.call(method, parameters)
            }
        }
        guard case .refused(let error) = failure else { return nil }
        return error
    }

    /// Adds a download of a target of the origin.
    func add(_ target: String, _ options: JSONValue = [:]) async throws -> String {
        let gid = try await call("aria2.addUri", [.string(origin.url(target))], options)
        return try #require(gid.string)
    }

    /// How many bytes of a download have come.
    func completedLength(of gid: String) async throws -> Int64 {
        let status = try await call("aria2.tellStatus", .string(gid), ["completedLength"])
        return status["completedLength"]?.string.flatMap { Int64($0) } ?? 0
    }

    /// Waits for an event of a download.
    func until(_ event: DownloadEvent, of gid: String, _ body: () async throws -> Void) async throws
    {
        let agent = try service.agent
        let (events, continuation) = AsyncStream.makeStream(of: DownloadNotification.self)
        let watcher = agent.addWatcher { continuation.yield($0) }
        defer { agent.removeWatcher(watcher) }
        try await body()
        for await told in events where told.event == event && "\(told.gid)" == gid { return }
    }

    /// Adds a download and waits until it has stopped.
    func download(
        _ target: String,
        _ options: JSONValue = [:],
        until event: DownloadEvent = .complete
    ) async throws -> JSONValue {
        let gid = try await add(
            target,
            .object(["pause": "true"].merging(options.object ?? [:]) { $1 })
        )
        try await until(event, of: gid) { _ = try await call("aria2.unpause", .string(gid)) }
        return try await call("aria2.tellStatus", .string(gid))
    }

    /// Whether a file of the download directory is the body of a target.
    func file(_ name: String, equals target: String, version: Int? = nil) throws -> Bool {
        let resource = try #require(origin.resource(target))
        let body = try #require(resource.bodyOfVersion(version ?? resource.version))
        return try files.file("out/\(name)", equals: body)
    }

    /// The names in the download directory.
    var names: [String] {
        do {
            return try FileManager.default.contentsOfDirectory(
                atPath: files.appending("out").string
            ).sorted()
        } catch {
            return []  // None was made.
        }
    }

    /// Serves generated bytes, fresh for an hour.
    func serve(_ path: String, length: Int64, seed: UInt64 = 7, _ script: OriginScript = .init()) {
        origin.serve(
            path,
            .generated(length: length, seed: seed, cacheControl: "max-age=3600"),
            script
        )
    }
}
