import Foundation
import HTTPCaching
import HTTPTypes
import TieredCache

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A `URLRequest` as the cache answers it: as an intermediary does, conditions and ranges of the
/// application's own too.
struct LoadRequest: Sendable {
    /// The URL that was asked for.
    let url: URL
    private let relayed: RelayRequest

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
        let target: TargetURI
        do throws(TargetURIError) {
            target = try TargetURI(url.absoluteString)
        } catch {
            return nil
        }
        var fields = DownloadRequest.defaultFields
        for (name, value) in request.allHTTPHeaderFields ?? [:] {
            guard let name = HTTPField.Name(name), HTTPField.isValidValue(value) else { return nil }
            fields[name] = value
        }
        fields = fields.adding(request.cachePolicy.ownFields)
        // A session decodes what it asks for; a part of something coded is of no use to it.
        fields[.acceptEncoding] = "identity"
        if fields[.authorization] == nil { fields[.authorization] = target.basicAuthorization }
        var relayed = RelayRequest(
            method: request.httpMethod == "HEAD" ? .head : .get,
            target: target,
            fields: fields
        )
        relayed.policy = request.cachePolicy.ofCache
        self.url = url
        self.relayed = relayed
    }

    /// Asks the cache.
    func answer(from cache: MediaCache) async throws(CacheError) -> LoadAnswer {
        await UnsafeTasks.all.settle()
        let followed = try await cache.relay(relayed, followingAtMost: 20, keepsCookies: true)
        guard !followed.isOverLimit else {
            throw CacheError(
                .originFailed,
                "the origin redirects more than 20 times",
                cause: URLError(.httpTooManyRedirects)
            )
        }
        let isMissing = followed.response.cacheStatus.detail == "only-if-cached"
        guard relayed.policy != .cacheOnly || !isMissing else {
            throw CacheError(.notCached, "\(relayed.target) is not stored")
        }
        return LoadAnswer(followed, url: url)
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
    /// The policy of the cache.
    var ofCache: HTTPCaching.CachePolicy {
        switch self {
        case .useProtocolCachePolicy, .reloadRevalidatingCacheData: .protocolDefault
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: .reload
        case .returnCacheDataElseLoad: .cacheElseLoad
        case .returnCacheDataDontLoad: .cacheOnly
        @unknown default: .protocolDefault
        }
    }

    /// What the policy says to caches on the way, and to this one (RFC 9111 §5.2.1).
    fileprivate var ownFields: HTTPFields {
        switch self {
        case .reloadIgnoringLocalAndRemoteCacheData: Self.pastAllCaches
        case .reloadRevalidatingCacheData: [.cacheControl: "max-age=0"]
        default: [:]
        }
    }

    private static let pastAllCaches: HTTPFields = {
        var fields: HTTPFields = [.cacheControl: "no-cache"]
        if let pragma = HTTPField.Name("Pragma") { fields[pragma] = "no-cache" }
        return fields
    }()
}
