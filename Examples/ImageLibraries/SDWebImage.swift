package import Foundation
package import TieredCache
import TieredCacheImages

/// SDWebImage's bytes from a cache.
///
/// `SDWebImageManager.defaultImageLoader = TieredImageLoader(cache)`
package final class TieredImageLoader: SDImageLoader {
    private let cache: MediaCache

    package init(_ cache: MediaCache) {
        self.cache = cache
    }

    package func canRequestImage(for url: URL?) -> Bool {
        ["http", "https"].contains(url?.scheme?.lowercased())
    }

    package func requestImage(
        with url: URL?,
        options: SDWebImageOptions,
        context: [String: Any]?,
        progress: SDImageLoaderProgressBlock?,
        completed: SDImageLoaderCompletedBlock?
    ) -> (any SDWebImageOperation)? {
        guard let url else { return nil }
        let body = ReceivedBody()
        // Blocks of Objective-C say nothing of threads; one call comes after the other.
        nonisolated(unsafe) let (progress, completed, context) = (progress, completed, context)
        return cache.load(CacheRequest(url)) { piece, response in
            body.bytes += piece
            progress?(body.bytes.count, response.completeLength.map { Int($0) } ?? 0, url)
        } onEnd: { error in
            if let error { return completed?(nil, nil, error, true) ?? () }
            let image = SDImageLoaderDecodeImageData(body.bytes, url, options, context)
            completed?(image, body.bytes, nil, true)
        }
    }

    package func shouldBlockFailedURL(with url: URL, error: any Error) -> Bool {
        (error as? CacheError)?.code == .httpStatus
    }

    private final class ReceivedBody: @unchecked Sendable {
        // Unchecked: calls of one load come one after the other.
        var bytes = Data()
    }
}

extension ImageLoad: SDWebImageOperation {}
