import FoundationEssentials

#if HTTPClient
import HTTPTypes
import Testing

@testable import TieredCache

/// What the tests of the transport share: a request, a transport of their own, a body read whole.
enum TransportCase {
    static func request(
        _ authority: String,
        path: String = "/",
        method: HTTPRequest.Method = .get,
        fields: HTTPFields = [:],
        body: [UInt8]? = nil,
        connectTimeout: Duration = .seconds(10)
    ) -> TransportRequest {
        TransportRequest(
            head: HTTPRequest(
                method: method,
                scheme: "http",
                authority: authority,
                path: path,
                headerFields: fields
            ),
            body: body.map { Data($0) },
            connectTimeout: connectTimeout
        )
    }

    static func withTransport<Value>(
        _ body: (NIOTransport) async throws -> Value
    ) async throws -> Value {
        let transport = NIOTransport()
        let result: Result<Value, any Error>
        do {
            result = .success(try await body(transport))
        } catch {
            result = .failure(error)
        }
        await transport.shutdown()
        return try result.get()
    }

    static func collect(_ body: any TransportBody) async throws(TransportError) -> [UInt8] {
        var bytes: [UInt8] = []
        while let chunk = try await body.next() {
            #expect((1...(1 << 20)).contains(chunk.count))
            chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
        }
        return bytes
    }
}
#endif
