import CTieredCache
import TieredCache

/// A stream that handles stand for.
final class HostedStream: Sendable {
    let reader: BlockingReader
    let hosted: HostedCache

    /// Creates a stream, which holds its cache.
    init(_ request: CacheRequest, options: ReaderOptions, of hosted: HostedCache) throws(Status) {
        try OpenCaches.all.hold(hosted)
        self.hosted = hosted
        reader = hosted.cache.blockingReader(for: request, options: options)
    }

    /// The last handle is gone: ends the calls that other threads are in.
    func close() {
        reader.cancel()
        OpenCaches.all.letGo(hosted)
    }
}

/// A job that handles stand for.
final class HostedJob: Sendable {
    let download: DownloadHandle
    let hosted: HostedCache

    /// Creates a handle's job, which holds its cache.
    init(_ download: DownloadHandle, of hosted: HostedCache) throws(Status) {
        try OpenCaches.all.hold(hosted)
        self.hosted = hosted
        self.download = download
    }

    /// The last handle is gone; the download goes on.
    func close() { OpenCaches.all.letGo(hosted) }
}
