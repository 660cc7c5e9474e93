#if HTTPClient
import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension TransportError {
    /// Maps an error of the library to a kind of failure.
    ///
    /// - Parameters:
    ///   - error: The error of the library.
    ///   - afterHead: Whether the response's head had arrived; before it, a socket error may mean
    ///     that there is no connection.
    init(_ error: any Error, afterHead: Bool) {
        self.init(
            Self.kind(of: error, afterHead: afterHead),
            Self.words(for: error),
            isTimeout: Self.isTimeout(error)
        )
    }

    /// The description of the system error if there is one, otherwise that of the library.
    private static func words(for error: any Error) -> String {
        switch error {
        case let error as IOError: Errno(rawValue: error.errnoCode).description
        default: "\(error)"
        }
    }

    private static func isTimeout(_ error: any Error) -> Bool {
        switch error {
        case let error as HTTPClientError:
            error == .connectTimeout || error == .getConnectionFromPoolTimeout
                || error == .tlsHandshakeTimeout
        case let error as NIOConnectionError:
            error.connectionErrors.contains { isTimeout($0.error) }
        case let error as IOError:
            error.errnoCode == ETIMEDOUT
        case ChannelError.connectTimeout:
            true
        default:
            false
        }
    }

    private static func kind(of error: any Error, afterHead: Bool) -> Kind {
        switch error {
        case let error as HTTPClientError:
            kind(of: error)
        case let error as HTTPParserError:
            error == .invalidEOFState ? .closedEarly : .malformedResponse
        case let error as NIOConnectionError:
            // Without an address there was no connection to try.
            error.connectionErrors.isEmpty ? .nameResolution : .connect
        case NIOSSLError.uncleanShutdown:
            .closedEarly
        case is NIOSSLError, is BoringSSLError, is NIOSSLExtraError:
            .tls
        case let error as IOError:
            kind(of: error, afterHead: afterHead)
        case let error as ChannelError:
            kind(of: error)
        case is CancellationError:
            .cancelled
        case is SocketAddressError:
            .nameResolution
        default:
            afterHead ? .closedEarly : .connect
        }
    }

    private static func kind(of error: HTTPClientError) -> Kind {
        switch error {
        case .cancelled: .cancelled
        case .alreadyShutdown: .shutDown
        case .connectTimeout, .getConnectionFromPoolTimeout: .connect
        case .tlsHandshakeTimeout: .tls
        case .remoteConnectionClosed, .requestStreamCancelled: .closedEarly
        case .uncleanShutdown, .deadlineExceeded, .readTimeout, .writeTimeout: .closedEarly
        default: .invalidRequest
        }
    }

    private static func kind(of error: IOError, afterHead: Bool) -> Kind {
        switch error.errnoCode {
        // These come from an established connection.
        case EPIPE, ECONNRESET, ECONNABORTED: .closedEarly
        default: afterHead ? .closedEarly : .connect
        }
    }

    private static func kind(of error: ChannelError) -> Kind {
        switch error {
        case .connectTimeout, .connectPending: .connect
        default: .closedEarly
        }
    }
}
#endif
