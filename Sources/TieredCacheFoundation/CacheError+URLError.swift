import Foundation
import TieredCache

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension CacheError {
    /// The error that a session gives in the same case, with this one below it.
    func asURLError(for url: URL?) -> URLError {
        URLError(urlCode, description, url: url, underlying: self)
    }

    private var urlCode: URLError.Code {
        switch code {
        case .cancelled: .cancelled
        case .timedOut: .timedOut
        case .notCached: .resourceUnavailable
        case .invalidURL: .unsupportedURL
        case .invalidArgument: .dataLengthExceedsMaximum
        case .representationChanged: .networkConnectionLost
        case .integrityFailed: .cannotDecodeRawData
        case .localStorage: .cannotWriteToFile
        case .originFailed:
            (cause as? TransportError)?.urlCode ?? (cause as? URLError)?.code ?? .badServerResponse
        default: .unknown
        }
    }
}

extension TransportError {
    fileprivate var urlCode: URLError.Code {
        switch kind {
        case .nameResolution: .cannotFindHost
        case .connect: isTimeout ? .timedOut : .cannotConnectToHost
        case .tls: .secureConnectionFailed
        case .closedEarly: .networkConnectionLost
        case .cancelled, .shutDown: .cancelled
        case .malformedResponse, .invalidRequest: .badServerResponse
        }
    }
}

extension URLError {
    /// An error with what applications look for in one.
    init(_ code: Code, _ text: String, url: URL?, underlying: (any Error)? = nil) {
        var info: [String: Any] = [NSLocalizedDescriptionKey: text]
        info[NSURLErrorFailingURLErrorKey] = url
        info[NSUnderlyingErrorKey] = underlying
        self.init(code, userInfo: info)
    }
}
