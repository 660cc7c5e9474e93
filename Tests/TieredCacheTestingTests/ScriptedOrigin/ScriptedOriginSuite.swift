import HTTPCaching
import HTTPTypes
import Testing
import TieredCache

@testable import TieredCacheTesting

/// What suites of the scripted origin share.
protocol ScriptedOriginSuite {
    /// For what blocks.
    var io: IOExecutor { get }
}

extension ScriptedOriginSuite {
    /// Sends one request with `Connection: close` and returns head and body.
    func exchange(
        _ origin: ScriptedOrigin,
        _ target: String,
        method: String = "GET",
        fields: [String] = [],
        body: String = ""
    ) async throws -> (head: String, body: [UInt8]) {
        let port = origin.port
        return try await io.run {
            let connection = try RawConnection(port: port)
            let lines = ["\(method) \(target) HTTP/1.1", "Host: x", "Connection: close"] + fields
            try connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
            return (try connection.receiveHead(), try connection.receiveAll())
        }
    }

    func withOrigin(
        timeSource: any TimeSource = SystemTimeSource(),
        _ body: (ScriptedOrigin) async throws -> Void
    ) async throws {
        let origin = try await ScriptedOrigin.start(timeSource: timeSource)
        do {
            try await body(origin)
        } catch {
            await origin.stop()
            throw error
        }
        await origin.stop()
        #expect(origin.log.openConnections == 0)
        #expect(origin.log.openResponses == 0)
    }
}
