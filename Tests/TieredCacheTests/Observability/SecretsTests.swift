import FoundationEssentials
import HTTPTypes
import Logging
import SystemPackage
import Testing
import TieredCacheTesting

@testable import TieredCache

/// What opens doors is in no log, no event and no error.
@Suite("Secrets", .timeLimit(.minutes(10)))
struct SecretsTests {
    private final class Lines: Sendable {
        private let state = Guarded<[String]>([])

        var all: [String] { state.withLock { $0 } }

        func append(_ line: String) { state.withLock { $0.append(line) } }
    }

    private static let fields: HTTPFields = [
        .authorization: "Bearer SECRET-AUTHORIZATION", .cookie: "id=SECRET-COOKIE",
        .proxyAuthorization: "Basic SECRET-PROXY",
    ]

    private static func answer(_ request: TransportRequest) -> ScriptedResponse {
        let path = request.head.path ?? ""
        var fields: HTTPFields = [
            .contentLength: "5", .cacheControl: "max-age=60", .setCookie: "id=SECRET-SET-COOKIE",
        ]
        if path.hasPrefix("/redirect") {
            fields[.location] = "https://cdn.example.com/other?signature=SECRET-REDIRECT"
            fields[.contentLength] = "0"
            return ScriptedResponse(status: 302, fields: fields)
        }
        if path.hasPrefix("/cut") {
            return ScriptedResponse(
                status: 200,
                fields: fields,
                steps: [.bytes([1, 2]), .fail(TransportError(.closedEarly, "SECRET-less"))]
            )
        }
        if path.hasPrefix("/refused") { return ScriptedResponse(failure: .connect) }
        let status = path.hasPrefix("/missing") ? 404 : 200
        return ScriptedResponse(status: status, fields: fields, steps: [.bytes([1, 2, 3, 4, 5])])
    }

    private static let paths = ["ok", "missing", "redirect", "cut", "refused"]

    /// Runs every case on a disk, and returns what was said.
    private func said(_ disk: InMemoryFileSystem) async throws -> [String] {
        let lines = Lines()
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.minimumFreeDisk = 0
        configuration.respondsToMemoryPressure = false
        configuration.retries = 1
        configuration.transport = ScriptedTransport { request, _ in Self.answer(request) }
        configuration.logger = Logger(label: "test") { _ in
            ListeningLogHandler { event, metadata in
                lines.append("\(event.level) \(event.message) \(event.metadata ?? [:]) \(metadata)")
            }
        }
        let cache = try MediaCache(configuration, fileSystem: disk)
        let events = cache.events()
        for path in Self.paths {
            let url = "https://user:SECRET-PASSWORD@example.com/\(path)?signature=SECRET-QUERY"
            for _ in 0..<2 {
                do {
                    var request = try CacheRequest(url)
                    request.fields.append(contentsOf: Self.fields)
                    let response = try await cache.response(for: request)
                    for try await _ in response.body {}
                    _ = try await cache.remove(request)
                } catch {
                    lines.append("error: \(error)")
                }
            }
        }
        await cache.shutdown()
        for await event in events {
            lines.append("event: \(event)")
        }
        return lines.all
    }

    @Test("requests that succeed and fail in every way say nothing secret")
    func requests() async throws {
        let lines = try await said(InMemoryFileSystem())
        #expect(lines.count > 10)
        #expect(lines.contains { $0.contains("error: ") })
        for line in lines where line.contains("SECRET-") {
            #expect(line.contains("SECRET-less"), "\(line)")
        }
    }

    @Test("nor does a disk that fails")
    func disk() async throws {
        let disk = InMemoryFileSystem()
        disk.fail(.create, with: .noSpace, times: .max, skipping: 4)
        for line in try await said(disk) where line.contains("SECRET-") {
            #expect(line.contains("SECRET-less"), "\(line)")
        }
    }

    @Test("credentials of requests are in no file; a cookie of the origin's only where it must be")
    func files() async throws {
        let disk = InMemoryFileSystem()
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.minimumFreeDisk = 0
        configuration.transport = ScriptedTransport { request, _ in
            let fields: HTTPFields = [
                .contentLength: "5", .cacheControl: "private, max-age=60",
                .vary: "Authorization, Cookie",
            ]
            return ScriptedResponse(status: 200, fields: fields, steps: [.bytes([1, 2, 3, 4, 5])])
        }
        let cache = try MediaCache(configuration, fileSystem: disk)
        var request = try CacheRequest("https://user:SECRET-PASSWORD@example.com/a")
        request.fields.append(contentsOf: Self.fields)
        #expect(try await cache.data(for: request).count == 5)
        #expect(try await cache.usage().entries == 1)
        await cache.shutdown()
        for path in disk.files.keys {
            let text = String(decoding: disk.content(of: path) ?? [], as: UTF8.self)
            #expect(!text.contains("SECRET"), "\(path)")
        }
    }
}
