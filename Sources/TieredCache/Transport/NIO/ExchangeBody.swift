#if HTTPClient
import NIOCore

/// The body as the engine sees it; releasing it closes the exchange.
///
/// A separate type, because the connection keeps the exchange alive while the request runs.
final class ExchangeBody: TransportBody {
    private let exchange: Exchange

    init(_ exchange: Exchange) {
        self.exchange = exchange
    }

    deinit {
        exchange.cancel()
    }

    func next() async throws(TransportError) -> BodyChunk? {
        guard let part = try await exchange.nextPart() else { return nil }
        return BodyChunk(ByteBufferStorage(buffer: part))
    }

    var isNextAtHand: Bool { exchange.isNextAtHand }

    func cancel() {
        exchange.cancel()
    }
}

/// The connection's buffer, without a copy.
struct ByteBufferStorage: BodyChunkStorage {
    let buffer: ByteBuffer

    var count: Int { buffer.readableBytes }

    func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try buffer.withUnsafeReadableBytes(body)
    }
}
#endif
