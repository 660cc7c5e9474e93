import Foundation
import HTTPCaching
import HTTPTypes
import TieredCache

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A `URLRequest` as the cache answers it.
struct LoadRequest: Sendable {
    private enum Way {
        /// As the application's own: decoded, resumed, and shared with all that use the cache.
        case own(CacheRequest)
        /// With the application's own range or condition, or a HEAD: as an intermediary answers.
        case relay(RelayRequest)
    }

    /// The URL that was asked for.
    let url: URL
    private let way: Way

    /// Whether the cache can answer a request: a GET or HEAD by http or https, without a body.
    static func takes(_ request: URLRequest) -> Bool {
        guard let scheme = request.url?.scheme?.lowercased(), ["http", "https"].contains(scheme)
        else { return false }
        return ["GET", "HEAD"].contains(request.httpMethod ?? "GET") && request.httpBody == nil
            && request.httpBodyStream == nil
            && request.value(forHTTPHeaderField: "Upgrade") == nil
    }

    /// The request; nil for one that ``takes(_:)`` refuses, or that cannot be sent.
    init?(_ request: URLRequest) {
        guard Self.takes(request), let url = request.url else { return nil }
        self.url = url
        var fields: HTTPFields = [:]
        for (name, value) in request.allHTTPHeaderFields ?? [:] {
            guard let name = HTTPField.Name(name), HTTPField.isValidValue(value) else { return nil }
            fields[name] = value
        }
        let isPlain =
            request.httpMethod != "HEAD" && !Self.selecting.contains { fields.contains($0) }
        guard isPlain else {
            guard let relay = Self.relay(request, url: url, fields: fields) else { return nil }
            way = .relay(relay)
            return
        }
        var own = CacheRequest(url)
        own.policy = request.cachePolicy.ofCache
        own.fields = own.fields.adding(fields).adding(request.cachePolicy.ownFields)
        way = .own(own)
    }

    private static let selecting: [HTTPField.Name] = [
        .range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince,
    ]

    private static func relay(
        _ request: URLRequest,
        url: URL,
        fields: HTTPFields
    ) -> RelayRequest? {
        let target: TargetURI
        do throws(TargetURIError) {
            target = try TargetURI(url.absoluteString)
        } catch {
            return nil
        }
        var fields = fields.adding(request.cachePolicy.relayFields)
        // A session decodes what it asks for; a part of something coded is of no use to it.
        fields[.acceptEncoding] = "identity"
        if fields[.authorization] == nil { fields[.authorization] = target.basicAuthorization }
        return RelayRequest(
            method: request.httpMethod == "HEAD" ? .head : .get,
            target: target,
            fields: fields
        )
    }

    /// Asks the cache.
    func answer(from cache: MediaCache) async throws(CacheError) -> LoadAnswer {
        switch way {
        case .own(let request):
            let response = try await cache.response(for: request)
            // As it was spelled, unless redirects have led elsewhere.
            let isSame = response.finalTarget == request.target
            let final = isSame ? nil : URL(string: response.finalTarget.string)
            return LoadAnswer(response, url: final ?? url)
        case .relay(let request):
            let followed = try await cache.relay(request, followingAtMost: 20)
            if followed.isOverLimit || followed.response.cacheStatus.detail == "only-if-cached" {
                throw followed.isOverLimit
                    ? CacheError(.originFailed, "the origin redirects more than 20 times")
                    : CacheError(.notCached, "\(request.target) is not stored")
            }
            return LoadAnswer(followed, url: url)
        }
    }
}

extension HTTPFields {
    /// With fields in the place of those of the same name.
    fileprivate func adding(_ others: HTTPFields) -> HTTPFields {
        var fields = self
        for field in others { fields[field.name] = field.value }
        return fields
    }
}

extension URLRequest.CachePolicy {
    /// The policy of the cache for the application's own requests.
    var ofCache: HTTPCaching.CachePolicy {
        switch self {
        case .useProtocolCachePolicy, .reloadRevalidatingCacheData: .protocolDefault
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: .reload
        case .returnCacheDataElseLoad: .cacheElseLoad
        case .returnCacheDataDontLoad: .cacheOnly
        @unknown default: .protocolDefault
        }
    }

    /// What the policy says to caches on the way, and to this one.
    fileprivate var ownFields: HTTPFields {
        switch self {
        case .reloadIgnoringLocalAndRemoteCacheData: Self.pastAllCaches
        case .reloadRevalidatingCacheData: [.cacheControl: "max-age=0"]
        default: [:]
        }
    }

    /// The policy in the words of HTTP (RFC 9111 §5.2.1).
    fileprivate var relayFields: HTTPFields {
        switch self {
        case .reloadIgnoringLocalCacheData: [.cacheControl: "no-cache"]
        case .returnCacheDataElseLoad: [.cacheControl: "max-stale"]
        case .returnCacheDataDontLoad: [.cacheControl: "only-if-cached, max-stale"]
        default: ownFields
        }
    }

    private static let pastAllCaches: HTTPFields = {
        var fields: HTTPFields = [.cacheControl: "no-cache"]
        if let pragma = HTTPField.Name("Pragma") { fields[pragma] = "no-cache" }
        return fields
    }()
}
