import HTTPCaching
import HTTPTypes
import NIOCore
import NIOHTTP1
import TieredCache

/// Responses of the reverse proxy without the origin.
enum LocalResponse {
    /// The response to a request that is neither forwarded nor answered from the cache; nil for
    /// other requests.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - fields: its fields; `Max-Forwards` is decremented.
    /// - Returns: the response, or nil.
    static func to(_ request: ServerRequest, fields: inout HTTPFields) -> WholeResponse? {
        guard let method = request.method else { return .text(400) }
        // Tunnels are not supported.
        guard method != .connect else { return notAllowed() }
        // Concerns the server as a whole, not a resource of the origin (RFC 9110 §9.3.7).
        if method == .options, request.target == "*" { return options() }
        if let expectation = request.value("expect"), expectation.lowercased() != "100-continue" {
            return .text(417)
        }
        guard Intermediary.endsHere(method: method, fields: &fields) else { return nil }
        return method == .trace ? trace(of: request) : options()
    }

    /// The response when the origin has failed, with `Cache-Status` (RFC 9211).
    static func to(_ error: CacheError) -> WholeResponse {
        var answer = WholeResponse.text(error.isTimeout ? 504 : 502)
        var status = error.cacheStatus ?? .forwarded(.request)
        status.detail = error.isTimeout ? "timeout" : "origin-failed"
        if let name = HTTPField.Name("Cache-Status") {
            answer.head.fields[name] = status.fieldValue
        }
        return answer
    }

    private static func notAllowed() -> WholeResponse {
        var answer = WholeResponse.text(405)
        answer.head.fields[.allow] = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE"
        return answer
    }

    private static func options() -> WholeResponse {
        WholeResponse(head: ResponseHead(status: 200, framing: .length(0)))
    }

    /// The request as it arrived, without secret fields (RFC 9110 §9.3.8).
    private static func trace(of request: ServerRequest) -> WholeResponse {
        var text = "TRACE \(request.target) HTTP/1.\(request.head.version.minor)\r\n"
        for field in request.fields where !isSecret(field.name) {
            text += "\(field.name.rawName): \(field.value)\r\n"
        }
        text += "\r\n"
        return WholeResponse(
            head: ResponseHead(
                status: 200,
                fields: [.contentType: "message/http"],
                framing: .length(Int64(text.utf8.count))
            ),
            body: ByteBuffer(string: text)
        )
    }

    private static func isSecret(_ name: HTTPField.Name) -> Bool {
        name == .authorization || name == .proxyAuthorization || name == .cookie
    }
}

extension CacheError {
    /// Whether the origin was too slow to accept a connection or to respond.
    fileprivate var isTimeout: Bool {
        code == .timedOut || (cause as? TransportError)?.isTimeout == true
    }
}
