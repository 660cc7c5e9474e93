#if HTTPClient
import HTTPTransport

extension TransportError {
    init(_ error: ExchangeError) {
        let kind: Kind =
            switch error.kind {
            case .nameResolution: .nameResolution
            case .connect: .connect
            case .tls: .tls
            case .closedEarly: .closedEarly
            case .malformedResponse: .malformedResponse
            case .cancelled: .cancelled
            case .shutDown: .shutDown
            case .invalidRequest: .invalidRequest
            }
        self.init(kind, error.description, isTimeout: error.isTimeout)
    }
}
#endif
