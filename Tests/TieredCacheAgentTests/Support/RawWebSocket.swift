import Testing
import TieredCacheTesting

/// A WebSocket client that sends what a test wants (RFC 6455). Its calls block.
final class RawWebSocket {
    private let connection: RawConnection
    private var bytes: [UInt8] = []

    /// The connection was closed.
    struct Closed: Error {}

    init(port: Int) throws {
        connection = try RawConnection(port: port)
        let head =
            "GET /jsonrpc HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nUpgrade: websocket\r\n"
            + "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            + "Sec-WebSocket-Version: 13\r\n\r\n"
        try connection.send(Array(head.utf8))
        let answer = try connection.receiveHead()
        // The example of RFC 6455, section 1.3.
        try #require(answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "\(answer)")
    }

    func send(_ text: String, isLast: Bool = true) throws {
        try connection.send(Self.frame(opcode: 1, text, isLast: isLast))
    }

    func sendContinuation(_ text: String) throws {
        try connection.send(Self.frame(opcode: 0, text, isLast: true))
    }

    /// A ping without a mask.
    func sendUnmasked() throws { try connection.send([0x89, 0x01, 0x00]) }

    /// A frame with a reserved opcode.
    func sendReserved() throws { try connection.send([0x8B, 0x80, 1, 2, 3, 4]) }

    private static func frame(opcode: UInt8, _ text: String, isLast: Bool) -> [UInt8] {
        let payload = Array(text.utf8)
        let key: [UInt8] = [1, 2, 3, 4]
        var frame: [UInt8] = [opcode | (isLast ? 0x80 : 0)]
        if payload.count < 126 {
            frame.append(0x80 | UInt8(payload.count))
        } else {
            frame += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        }
        return frame + key + payload.enumerated().map { $1 ^ key[$0 % 4] }
    }

    /// The next text.
    func receive() throws -> String {
        let head = try take(2)
        var length = Int(head[1] & 0x7F)
        if length == 126 {
            let more = try take(2)
            length = Int(more[0]) << 8 | Int(more[1])
        }
        let payload = try take(length)
        guard head[0] & 0x0F != 8 else { throw Closed() }
        return String(decoding: payload, as: UTF8.self)
    }

    private func take(_ count: Int) throws -> [UInt8] {
        while bytes.count < count {
            let part = try connection.receive()
            guard !part.isEmpty else { throw Closed() }
            bytes += part
        }
        defer { bytes.removeFirst(count) }
        return Array(bytes.prefix(count))
    }
}
