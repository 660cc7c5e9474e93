#if AsyncHTTPClient
import AsyncHTTPClient
import HTTPCaching
import HTTPTypes
import NIOHTTP1
import TieredCache

extension RelayRequest {
    /// Fields with a meaning for the connection that the cache's own would not keep.
    private static let leftToClient = [
        "host", "expect", "upgrade", "content-length", "transfer-encoding", "proxy-authorization",
    ]

    /// The request as the cache relays it; nil for one that is left to the client.
    init?(_ request: HTTPClientRequest) {
        guard request.method == .GET || request.method == .HEAD, request.body == nil,
            request.tlsConfiguration == nil, request.localAddress == nil,
            !Self.leftToClient.contains(where: { request.headers.contains(name: $0) }),
            let target = TargetURI(ofRequest: request.url),
            let fields = HTTPFields(request.headers)
        else { return nil }
        self.init(method: request.method == .GET ? .get : .head, target: target, fields: fields)
    }
}

extension TargetURI {
    /// The target of a request's URL; nil for one that the cache cannot ask for.
    init?(ofRequest url: String) {
        do throws(TargetURIError) {
            try self.init(url)
        } catch {
            return nil  // The client knows more schemes, and says what is wrong with the rest.
        }
    }
}

extension HTTPFields {
    /// The fields in the types of swift-http-types; nil if one of them is no valid field.
    ///
    /// - Parameter headers: the fields.
    init?(_ headers: HTTPHeaders) {
        self.init()
        for (name, value) in headers {
            guard let name = HTTPField.Name(name), HTTPField.isValidValue(value) else { return nil }
            append(HTTPField(name: name, value: value))
        }
    }
}

extension HTTPHeaders {
    /// The fields in the types of SwiftNIO.
    init(_ fields: HTTPFields) {
        self.init(fields.map { ($0.name.rawName, $0.value) })
    }

    /// Says that the cache has left a request to the client (RFC 9211).
    mutating func addCacheStatus(ofMethod method: HTTPMethod) {
        let isCacheable = method == .GET || method == .HEAD
        let status = CacheStatus.forwarded(isCacheable ? .bypass : .method)
        add(name: "Cache-Status", value: status.fieldValue)
    }
}
#endif
