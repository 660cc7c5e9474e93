#if HTTPClient
import HTTPCaching
import HTTPTypes
import NIOCore

/// Keeps the bytes of an awaited head, because the parser replaces those that are not UTF-8.
final class HeadBytes: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The parser refuses fields that are longer.
    private static let maximumSize = 128 << 10

    /// Nil while no head is awaited.
    private var bytes: ByteBuffer?

    /// A head is awaited.
    func begin() { bytes = ByteBuffer() }

    /// The head has been read; what has come since ``begin()`` begins with it.
    func end() -> ByteBuffer {
        defer { bytes = nil }
        return bytes ?? ByteBuffer()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if let count = bytes?.readableBytes, count < Self.maximumSize {
            var more = unwrapInboundIn(data)
            if count == 0 { bytes = more } else { bytes?.writeBuffer(&more) }
        }
        context.fireChannelRead(data)
    }
}

extension ByteBuffer {
    /// The first value of a field whose value is a URI reference; nil if there is none.
    func reference(in name: HTTPField.Name) -> String? {
        let start = Array("\(name.canonicalName):".utf8)
        for line in readableBytesView.split(separator: UInt8(ascii: "\n"))
        where line.count >= start.count && zip(line, start).allSatisfy({ $0 | 0x20 == $1 | 0x20 }) {
            let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0D }
            let value = line.dropFirst(start.count).drop(while: isSpace)
            let spaces = value.reversed().prefix(while: isSpace)
            return TargetURI.reference(value.dropLast(spaces.count))
        }
        return nil
    }
}
#endif
