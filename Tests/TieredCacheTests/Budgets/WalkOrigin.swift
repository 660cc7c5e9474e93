#if os(Linux) && DEBUG && HTTPClient
import HTTPTypes
import NIOCore

@testable import TieredCache

/// An origin without sockets, which tells an exchange what a connection of the transport would, in
/// the same steps.
///
/// A body of one part comes at once with its head, each part of a longer one in a read of its own.
final class WalkOrigin: CancellableTransport {
    /// A response.
    struct Answer: Sendable {
        var head: HTTPResponse
        var parts: [ByteBuffer] = []

        init(_ status: Int, _ fields: HTTPFields, parts: [ByteBuffer] = []) {
            head = HTTPResponse(status: .init(code: status), headerFields: fields)
            self.parts = parts
        }
    }

    private let threads: WalkThreads
    private let answer: @Sendable (HTTPRequest) -> Answer

    init(_ threads: WalkThreads, answer: @escaping @Sendable (HTTPRequest) -> Answer) {
        self.threads = threads
        self.answer = answer
    }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let exchange = Exchange(onInterim: request.onInterim)
        request.onStart?({ exchange.cancel() })
        let answer = answer(request.head)
        threads.onNetwork(isHandover: true) { [self] in bring(answer, to: exchange) }
        return try await exchange.response()
    }

    func shutdown() async {}

    private func bring(_ answer: Answer, to exchange: Exchange) {
        guard exchange.willSend(from: "192.0.2.1", cancel: {}) else { return }
        guard answer.parts.count > 1 else {
            exchange.didReceiveWhole(answer.head, answer.parts.first ?? ByteBuffer())
            return
        }
        exchange.didReceive(answer.head)
        exchange.didCompleteRead()
        bring(answer.parts[...], to: exchange)
    }

    private func bring(_ parts: ArraySlice<ByteBuffer>, to exchange: Exchange) {
        guard let part = parts.first else { return }
        threads.onNetwork { [self] in
            exchange.didReceive(part)
            if parts.count == 1 {
                exchange.didReceiveEnd()
            } else {
                exchange.didCompleteRead()
            }
            bring(parts.dropFirst(), to: exchange)
        }
    }
}
#endif
