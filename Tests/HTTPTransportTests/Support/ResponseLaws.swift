import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1

/// What holds for any bytes that a server sends: how they are cut changes nothing, and where
/// SwiftNIO's parser takes them as well, both read the same response.
enum ResponseLaws {
    /// A law that does not hold, and where.
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    /// Checks all laws.
    ///
    /// - Parameters:
    ///   - bytes: what the server sends before it closes the connection.
    ///   - size: into pieces of how many bytes it is cut as well.
    ///   - method: that of the request.
    /// - Returns: whether both parsers took the response.
    /// - Throws: ``Broken``.
    @discardableResult
    static func check(
        _ bytes: [UInt8],
        pieces size: Int,
        method: HTTPRequest.Method = .get
    ) throws -> Bool {
        let whole = ResponseReading(bytes, method: method)
        let cut = ResponseReading(bytes, pieces: size, method: method)
        guard whole == cut else {
            throw broken(bytes, "in pieces of \(size) is \(cut), whole \(whole)")
        }
        // Of a head that is not complete it cannot be said yet.
        guard whole.refusal == nil, let status = whole.statuses.last, status >= 200 else {
            return false
        }
        let other = PeerReading(bytes, method: method)
        guard !other.isRefused, !other.isAmbiguous else { return false }
        guard whole.statuses == other.statuses, whole.body == other.body,
            whole.hasEnded == other.hasEnded, whole.fields == other.fields
        else { throw broken(bytes, "is \(whole), to SwiftNIO \(other)") }
        return true
    }

    private static func broken(_ bytes: [UInt8], _ what: String) -> Broken {
        Broken(description: "\(String(decoding: bytes, as: UTF8.self).debugDescription) \(what)")
    }
}

/// What SwiftNIO's parser makes of the same bytes.
private struct PeerReading {
    var statuses: [Int] = []
    var fields: [ResponseReading.Field] = []
    var body: [UInt8] = []
    var hasEnded = false
    var isRefused = false
    /// Whether it read something that docs/transport.md says is read in another way here.
    var isAmbiguous = false

    init(_ bytes: [UInt8], method: HTTPRequest.Method) {
        let decoder = HTTPResponseDecoder(
            leftOverBytesStrategy: .dropBytes,
            informationalResponseStrategy: .forward
        )
        let channel = EmbeddedChannel(
            handlers: [HTTPRequestEncoder(), ByteToMessageHandler(decoder)]
        )
        let head = HTTPRequestHead(
            version: .http1_1,
            method: HTTPMethod(rawValue: method.rawValue),
            uri: "/"
        )
        channel.write(HTTPClientRequestPart.head(head), promise: nil)
        channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
        do {
            try channel.writeInbound(ByteBuffer(bytes: bytes))
            channel.pipeline.fireChannelInactive()
            try channel.throwIfErrorCaught()
        } catch {
            isRefused = true
        }
        do {
            while !hasEnded, let part = try channel.readInbound(as: HTTPClientResponsePart.self) {
                take(part)
            }
        } catch {
            isRefused = true
        }
    }

    private mutating func take(_ part: HTTPClientResponsePart) {
        switch part {
        case .head(let head):
            statuses.append(Int(head.status.code))
            // It leaves the spaces behind a value.
            fields = head.headers.map { name, value in
                let spaces = value.reversed().prefix { $0 == " " || $0 == "\t" }
                let trimmed = String(value.dropLast(spaces.count))
                return ResponseReading.Field(name: name, value: trimmed)
            }
            isAmbiguous = isAmbiguous || head.status == .switchingProtocols
        case .body(let part): body += part.readableBytesView
        case .end: hasEnded = true
        }
    }
}
