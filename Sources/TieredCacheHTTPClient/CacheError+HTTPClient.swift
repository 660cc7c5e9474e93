#if AsyncHTTPClient
import AsyncHTTPClient
import HTTPTypes
import NIOHTTP1
import TieredCache

extension CacheError {
    /// The error that the client throws in the same case; this one if there is none.
    var asClientError: any Error {
        switch code {
        // The task, or all transfers of the cache.
        case .cancelled: Task.isCancelled ? CancellationError() : HTTPClientError.cancelled
        case .shutDown: HTTPClientError.alreadyShutdown
        case .timedOut: HTTPClientError.readTimeout
        case .originFailed where (cause as? TransportError)?.isTimeout == true:
            HTTPClientError.connectTimeout
        default: self
        }
    }
}

extension HTTPResponseStatus {
    /// The status in the type of SwiftNIO.
    init(_ status: HTTPResponse.Status) {
        self.init(statusCode: status.code, reasonPhrase: status.reasonPhrase)
    }
}
#endif
