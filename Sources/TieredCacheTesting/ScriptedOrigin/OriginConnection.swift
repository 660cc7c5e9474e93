import NIOCore
import NIOHTTP1
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Writes the responses on one accepted connection sequentially.
struct OriginConnection: Sendable {
    /// Thrown when the script ends the connection.
    enum Ending: Error {
        case cut(OriginBehaviour.Cut)
    }

    private static let pieceSize = 256 * 1024
    private static let maximumLoggedBody = 64 * 1024

    let origin: ScriptedOrigin
    let number: Int
    let channel: any Channel

    /// Answers until the client or the script ends the connection, or the task is cancelled.
    func serve(_ inbound: NIOAsyncChannelInboundStream<HTTPServerRequestPart>) async {
        var parts = inbound.makeAsyncIterator()
        while let exchange = await nextRequest(&parts) {
            let (request, number) = exchange
            let (answer, key) = origin.answer(to: request)
            do {
                try await perform(answer, exchange: number, key: key)
                origin.end(number, with: .complete)
            } catch Ending.cut(let cut) {
                origin.end(number, with: .cut)
                return await close(cut)
            } catch {
                // The peer has disconnected, or the origin stops.
                return origin.end(number, with: .disconnected)
            }
            guard !answer.closesConnection else { return }
        }
    }

    /// Reads a whole request; nil at the end of the connection, or if the input is not HTTP.
    private func nextRequest(
        _ parts: inout NIOAsyncChannelInboundStream<HTTPServerRequestPart>.AsyncIterator
    ) async -> (OriginRequest, Int)? {
        var request: (OriginRequest, Int)?
        do {
            while let part = try await parts.next() {
                switch part {
                case .head(let head):
                    request = begin(OriginRequest(head))
                    if head.headers.contains(name: "expect") {
                        try await write(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
                    }
                case .body(let bytes):
                    guard let (_, number) = request else { continue }
                    origin.append(
                        bytes.readableBytesView,
                        to: number,
                        limit: Self.maximumLoggedBody
                    )
                case .end:
                    return request
                }
            }
        } catch {
            // The input is not HTTP, or the connection is broken; it cannot be used further.
        }
        if let (_, number) = request { origin.end(number, with: .disconnected) }
        return nil
    }

    private func begin(_ request: OriginRequest) -> (OriginRequest, Int) {
        (request, origin.begin(request, connection: number))
    }

    private func perform(_ answer: OriginResponse, exchange: Int, key: String) async throws {
        for step in answer.steps {
            switch step {
            case .sleep(let duration): try await origin.timeSource.sleep(for: duration)
            case .wait(let gate): await gate.wait()
            case .stall: await OriginGate().wait()
            case .changeVersion: origin.update(key) { $0.version += 1 }
            case .raw(let bytes): try await write(bytes)
            case .body(let range): try await write(range, of: answer, exchange: exchange)
            case .cut(let cut): throw Ending.cut(cut)
            case .head(let bytes):
                origin.willWriteHead(exchange, status: answer.status)
                do {
                    try await write(bytes)
                } catch {
                    origin.willWriteHead(exchange, status: nil)
                    throw error
                }
            }
            try Task.checkCancellation()
        }
    }

    private func write(_ bytes: [UInt8]) async throws {
        try await channel.writeAndFlush(ByteBuffer(bytes: bytes)).get()
    }

    /// Writes a range in pieces, each when the kernel has taken the previous one.
    private func write(_ range: Range<Int64>, of answer: OriginResponse, exchange: Int) async throws
    {
        // Twenty pieces a second look smooth enough to a client that measures a rate.
        let limit = answer.bytesPerSecond.map { max(1, min($0 / 20, Self.pieceSize)) }
        let size = Int64(limit ?? Self.pieceSize)
        var position = range.lowerBound
        while position < range.upperBound {
            let end = min(range.upperBound, position + size)
            try await write(piece: position..<end, of: answer, exchange: exchange)
            if let rate = answer.bytesPerSecond {
                try await origin.timeSource.sleep(for: .seconds(1) * Int(end - position) / rate)
            }
            position = end
        }
    }

    /// Counts the bytes before they are written, so that the log contains all bytes that a client
    /// has.
    private func write(
        piece range: Range<Int64>,
        of answer: OriginResponse,
        exchange: Int
    ) async throws {
        let count = Int64(range.count)
        origin.willWriteBody(exchange, count: count)
        do {
            try await channel.writeAndFlush(piece(range, of: answer)).get()
        } catch {
            origin.willWriteBody(exchange, count: -count)
            throw error
        }
    }

    private func piece(_ range: Range<Int64>, of answer: OriginResponse) -> ByteBuffer {
        var buffer = channel.allocator.buffer(capacity: range.count + 32)
        if answer.isChunked { buffer.writeString(String(range.count, radix: 16) + "\r\n") }
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: range.count) { target in
            answer.source.fill(
                UnsafeMutableRawBufferPointer(rebasing: target[..<range.count]),
                from: range.lowerBound
            )
            return range.count
        }
        if answer.isChunked { buffer.writeString("\r\n") }
        return buffer
    }

    private func close(_ cut: OriginBehaviour.Cut) async {
        guard cut == .reset, let options = channel as? any SocketOptionProvider else { return }
        await drain(options)
        do {
            try await options.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
            try await channel.close().get()
        } catch {
            // Already closed by the peer.
        }
    }

    /// Waits until the kernel has sent everything, at most half a minute, because a reset discards
    /// unsent bytes, and on a busy machine the client may read slowly.
    private func drain(_ options: any SocketOptionProvider) async {
        #if os(Linux)
        for _ in 0..<6000 {
            do {
                guard try await options.getTCPInfo().get().tcpi_unacked > 0 else { return }
                try await Task.sleep(for: .milliseconds(5))
            } catch {
                // The socket is closed, or the test is over.
                return
            }
        }
        #endif
    }
}
