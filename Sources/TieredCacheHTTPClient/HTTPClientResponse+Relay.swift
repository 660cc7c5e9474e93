#if AsyncHTTPClient
import AsyncHTTPClient
import FoundationEssentials
import HTTPCaching
import HTTPTypes
import NIOCore
import NIOHTTP1
import TieredCache

extension HTTPClientResponse {
    /// The response of the cache, with the redirects that it has followed.
    init(_ followed: FollowedRelay, to request: HTTPClientRequest) {
        let history = followed.hops.enumerated().map { index, hop in
            HTTPClientRequestResponse(
                request: index == 0 ? request : HTTPClientRequest(hop.request),
                responseHead: HTTPResponseHead(
                    version: .http1_1,
                    status: HTTPResponseStatus(hop.status),
                    headers: HTTPHeaders(hop.fields)
                )
            )
        }
        let last = followed.response
        self.init(
            version: .http1_1,
            status: HTTPResponseStatus(last.status),
            headers: HTTPHeaders(last.fields),
            body: .stream(RelayedBody(body: last.body)),
            history: history
        )
    }
}

extension HTTPClientRequest {
    /// The request that a redirect has led to.
    fileprivate init(_ request: RelayRequest) {
        self.init(url: request.target.string)
        method = request.method == .head ? .HEAD : .GET
        headers = HTTPHeaders(request.fields)
    }
}

/// A body as the client's users read it: a chunk each time, none read ahead.
private struct RelayedBody: AsyncSequence, Sendable {
    let body: ResponseBody

    func makeAsyncIterator() -> Iterator { Iterator(body: body.makeAsyncIterator()) }

    struct Iterator: AsyncIteratorProtocol {
        var body: ResponseBody.AsyncIterator

        mutating func next() async throws -> ByteBuffer? {
            do {
                return try await body.next().map { $0.withUnsafeBytes { ByteBuffer(bytes: $0) } }
            } catch {
                throw error.asClientError
            }
        }
    }
}
#endif
