// What the adapters of this folder conform to, in the form in which the libraries declare it: they
// need UIKit or AppKit, and do not compile on Linux. Leave this file out where you copy an adapter.

package import Foundation

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

// MARK: Nuke 13

/// Fetches the bytes of images.
package protocol DataLoading: Sendable {
    func loadData(
        with request: URLRequest
    ) async throws -> (AsyncThrowingStream<Data, any Error>, URLResponse)
}

/// Keeps bytes by keys of the pipeline's choice.
package protocol DataCaching: Sendable {
    func cachedData(for key: String) -> Data?
    func containsData(for key: String) -> Bool
    func storeData(_ data: Data, for key: String)
    func removeData(for key: String)
    func removeAll()
}

// MARK: Kingfisher 8

/// Loads images by a session.
package class ImageDownloader: @unchecked Sendable {
    // Unchecked, as in the library, where a lock guards it.
    package var sessionConfiguration = URLSessionConfiguration.ephemeral

    package init(name: String) {}

    /// Not declared by the library, which has a callback: how it asks its session.
    package func data(
        from url: URL,
        modifiedBy modifier: any ImageDownloadRequestModifier
    ) async throws -> (Data, URLResponse) {
        let request = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)
        guard let request = modifier.modified(for: request) else { throw URLError(.badURL) }
        return try await URLSession(configuration: sessionConfiguration).data(for: request)
    }
}

/// Changes a request before it is sent.
package protocol ImageDownloadRequestModifier: Sendable {
    func modified(for request: URLRequest) -> URLRequest?
}

// MARK: SDWebImage 5

/// Stands for `UIImage`.
package struct PlatformImage: Sendable {
    package let data: Data
}

package protocol SDWebImageOperation {
    func cancel()
}

package struct SDWebImageOptions: OptionSet, Sendable {
    package let rawValue: UInt

    package init(rawValue: UInt) {
        self.rawValue = rawValue
    }
}

package typealias SDImageLoaderProgressBlock = (Int, Int, URL?) -> Void
package typealias SDImageLoaderCompletedBlock = (PlatformImage?, Data?, (any Error)?, Bool) -> Void

package protocol SDImageLoader {
    func canRequestImage(for url: URL?) -> Bool
    func requestImage(
        with url: URL?,
        options: SDWebImageOptions,
        context: [String: Any]?,
        progress: SDImageLoaderProgressBlock?,
        completed: SDImageLoaderCompletedBlock?
    ) -> (any SDWebImageOperation)?
    func shouldBlockFailedURL(with url: URL, error: any Error) -> Bool
}

/// The decoder of SDWebImage.
package func SDImageLoaderDecodeImageData(
    _ data: Data,
    _ url: URL,
    _ options: SDWebImageOptions,
    _ context: [String: Any]?
) -> PlatformImage? {
    PlatformImage(data: data)
}
