import HTTPTypes
import Hummingbird
import TieredCache

/// A handler that answers from what is stored of an upstream server, or by a call of it.
struct UpstreamCalls {
    let cache: MediaCache
    let upstream: String

    func answer(_ request: Request, context: some RequestContext) async throws -> Response {
        let path = request.uri.path
        // No way out of /api, nor to another host.
        guard path.hasPrefix("/api/"), !path.contains(".."), !path.lowercased().contains("%2e")
        else { throw HTTPError(.notFound) }
        do throws(CacheError) {
            let query = request.uri.query.map { "?\($0)" } ?? ""
            var call = try CacheRequest(upstream + path + query)
            // What the upstream may choose by; it has to name them in `Vary`.
            for name in [HTTPField.Name.accept, .acceptLanguage] {
                call.fields[name] = request.headers[name]
            }
            return Response(try await cache.response(for: call))
        } catch {
            context.logger.error("\(error)")
            switch error.code {
            case .invalidURL: throw HTTPError(.badRequest)
            case .timedOut: throw HTTPError(.gatewayTimeout)
            default: throw HTTPError(.badGateway)
            }
        }
    }
}

extension Response {
    /// What the client gets, its body as it arrives.
    init(_ cached: CacheResponse) {
        var fields = cached.fields
        fields[.setCookie] = nil  // The upstream's client is this server.
        fields[.contentLength] = cached.length.map(String.init)
        if let name = HTTPField.Name("Cache-Status") {
            fields[name] = cached.cacheStatus.fieldValue
        }
        let body = cached.body.map { ByteBuffer(bytes: $0) }
        self.init(status: cached.status, headers: fields, body: .init(asyncSequence: body))
    }
}
