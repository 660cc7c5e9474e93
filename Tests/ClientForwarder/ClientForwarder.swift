import Foundation
import NIOCore
import NIOHTTP1

/// A proxy in front of an origin that asks it by one of the clients with a cache, so that what
/// judges caches from outside can judge those: the public cache tests, see docs/http-conformance.md.
///
/// usage: ClientForwarder --foundation|--http-client ORIGIN DIRECTORY
///
/// `ORIGIN` is a URL without a path, `DIRECTORY` that of the cache. Prints a line with its address.
@main
enum ClientForwarder {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 4 else { throw Failure.usage }
        let directory = URL(filePath: arguments[3])
        let client: any ForwardingClient
        switch arguments[1] {
        case "--foundation": client = try SessionClient(directory: directory)
        case "--http-client": client = try CachingClient(directory: directory)
        default: throw Failure.usage
        }
        try await ForwardingServer(origin: arguments[2], client: client).run()
    }
}

/// A client that has a cache.
protocol ForwardingClient: Sendable {
    /// Asks the cache, which may ask the origin.
    ///
    /// - Parameters:
    ///   - request: the request, with a URL in the place of its target, and without fields of the
    ///     connection.
    ///   - body: its body; empty for none.
    /// - Returns: the response, and its whole body.
    func response(
        to request: HTTPRequestHead,
        body: ByteBuffer
    ) async throws -> (HTTPResponseHead, ByteBuffer)
}

/// Why the forwarder cannot do what it was asked.
struct Failure: Error, CustomStringConvertible {
    static let usage = Failure(
        description: "usage: ClientForwarder --foundation|--http-client ORIGIN DIRECTORY"
    )
    let description: String
}
