import NIOCore
import NIOPosix
import NIOSSL

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Why an exchange failed.
package struct ExchangeError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What it failed at.
    package enum Kind: Sendable {
        case nameResolution, connect, tls, closedEarly, malformedResponse, cancelled, shutDown
        case invalidRequest
    }

    package let kind: Kind
    /// For people: that of the system if there is one, otherwise that of the library.
    package let description: String
    /// Whether the peer took too long, rather than refused.
    package let isTimeout: Bool

    init(_ kind: Kind, _ description: String) {
        (self.kind, self.description, isTimeout) = (kind, description, false)
    }

    /// The transport was shut down.
    package static let shutDown = ExchangeError(.shutDown, "the transport was shut down")

    /// Maps an error of SwiftNIO, or of a connection.
    ///
    /// - Parameters:
    ///   - error: The error.
    ///   - afterHead: Whether the response's head had arrived; before it, a socket error may mean
    ///     that there is no connection.
    init(_ error: any Error, afterHead: Bool) {
        if let error = error as? ExchangeError {
            self = error
            return
        }
        kind = Self.kind(of: error, afterHead: afterHead)
        description = Self.words(for: error)
        isTimeout = Self.isTimeout(error)
    }

    private static func words(for error: any Error) -> String {
        switch error {
        case let error as IOError: String(cString: strerror(error.errnoCode))
        default: "\(error)"
        }
    }

    private static func isTimeout(_ error: any Error) -> Bool {
        switch error {
        case is ConnectionTimeout:
            true
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
        case is ConnectionClosed:
            .closedEarly
        case is ConnectionTimeout:
            .connect
        case is UploadLengthError:
            .invalidRequest
        case is ResponseSyntaxError:
            .malformedResponse
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
