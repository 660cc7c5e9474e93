import Foundation
import TieredCacheFoundation

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

extension ImageDownloader {
    /// Has its session answered by the cache in use (`TieredURLProtocol.use`).
    ///
    /// Its tasks can be made by itself alone, so that the session is the place.
    package func answerFromCache() {
        let configuration = sessionConfiguration
        configuration.answerFromCache()
        // Set anew, for the downloader makes its session then.
        sessionConfiguration = configuration
    }
}

/// `KingfisherManager.shared.defaultOptions += [.requestModifier(CachedRequests())]`: Kingfisher
/// asks for each image past all caches, which it leaves to its own.
package struct CachedRequests: ImageDownloadRequestModifier {
    package init() {}

    package func modified(for request: URLRequest) -> URLRequest? {
        var request = request
        request.cachePolicy = .useProtocolCachePolicy
        return request
    }
}
