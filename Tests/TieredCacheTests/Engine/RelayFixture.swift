import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import TieredCacheTesting

@testable import TieredCache

/// A cache with a clock set by hand before an origin that follows a script, asked as a proxy asks.
final class RelayFixture: Sendable {
    /// What a client got, and what the origin was asked for it.
    struct Exchange {
        let status: Int
        let fields: HTTPFields
        let body: String
        let cacheStatus: CacheStatus
        let requests: [HTTPRequest]

        /// Whether the origin was not asked.
        var isHit: Bool { requests.isEmpty }
    }

    let time = ManualTimeSource()
    let transport: ScriptedTransport
    let disk: InMemoryFileSystem
    let cache: MediaCache
    private let script = Script()

    private final class Script: Sendable {
        let answers = Guarded<[ScriptedResponse]>([])

        func next() -> ScriptedResponse {
            answers.withLock {
                $0.isEmpty ? ScriptedResponse(failure: .closedEarly) : $0.removeFirst()
            }
        }
    }

    init(_ change: (inout MediaCache.Configuration) -> Void = { _ in }) throws {
        transport = ScriptedTransport(time: time) { [script] _, _ in script.next() }
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.transport = transport
        configuration.timeSource = time
        configuration.respondsToMemoryPressure = false
        configuration.minimumFreeDisk = 0
        // Its sleeper would be one of those that tests wait for.
        configuration.keepsHistory = false
        change(&configuration)
        disk = InMemoryFileSystem(time: time)
        cache = try MediaCache(configuration, fileSystem: disk)
    }

    /// Runs `body` with a fixture, whose cache is shut down afterwards.
    static func run(
        _ change: (inout MediaCache.Configuration) -> Void = { _ in },
        _ body: (RelayFixture) async throws -> Void
    ) async throws {
        let fixture = try RelayFixture(change)
        do {
            try await body(fixture)
        } catch {
            await fixture.cache.shutdown()
            throw error
        }
        await fixture.cache.shutdown()
    }

    /// Makes the origin answer the next requests with these, one after the other.
    func prepare(_ answers: ScriptedResponse...) {
        script.answers.withLock { $0 = answers }
    }

    /// Asks for `/a` and reads the response to its end.
    func ask(_ answers: ScriptedResponse...) async throws -> Exchange {
        try await ask(.get, [:], path: "/a", body: nil, answers)
    }

    /// Asks for another target.
    func ask(path: String, _ answers: ScriptedResponse...) async throws -> Exchange {
        try await ask(.get, [:], path: path, body: nil, answers)
    }

    /// Asks by another method.
    func ask(
        _ method: HTTPRequest.Method,
        _ answers: ScriptedResponse...
    ) async throws -> Exchange {
        try await ask(method, [:], path: "/a", body: nil, answers)
    }

    /// Sends something.
    func ask(
        _ method: HTTPRequest.Method,
        body: UploadBody,
        _ answers: ScriptedResponse...
    ) async throws -> Exchange {
        try await ask(method, [:], path: "/a", body: body, answers)
    }

    /// Asks with fields.
    func ask(
        _ method: HTTPRequest.Method,
        _ fields: HTTPFields,
        _ answers: ScriptedResponse...
    ) async throws -> Exchange {
        try await ask(method, fields, path: "/a", body: nil, answers)
    }

    private func ask(
        _ method: HTTPRequest.Method,
        _ fields: HTTPFields,
        path: String,
        body: UploadBody?,
        _ answers: [ScriptedResponse]
    ) async throws -> Exchange {
        script.answers.withLock { $0 = answers }
        let before = transport.requests.count
        let target = try TargetURI("http://origin.example\(path)")
        let request = RelayRequest(method: method, target: target, fields: fields, body: body)
        let response = try await cache.relay(request)
        let bytes = try await response.body.collect()
        return Exchange(
            status: response.status.code,
            fields: response.fields,
            body: String(decoding: bytes, as: UTF8.self),
            cacheStatus: response.cacheStatus,
            requests: transport.requests.dropFirst(before).map(\.head)
        )
    }

    /// A response with a body and the `Date` of now.
    func answer(
        _ status: Int = 200,
        _ fields: HTTPFields = [:],
        body: String = "body"
    ) -> ScriptedResponse {
        var fields = fields
        if fields[.date] == nil { fields[.date] = HTTPDate.format(time.wallTime()) }
        let hasBody = status != 304 && status != 204 && !body.isEmpty
        if fields[.contentLength] == nil, fields[.transferEncoding] == nil, hasBody {
            fields[.contentLength] = String(body.utf8.count)
        }
        return ScriptedResponse(
            status: status,
            fields: fields,
            steps: hasBody ? [.bytes(Array(body.utf8))] : []
        )
    }
}
