/// The facts about framing and host from the lines of a request's head.
struct RequestHeadFacts {
    private(set) var hasRequestLine = false
    private(set) var contentLength: Int64?
    private(set) var isChunked = false
    private var isVersion10 = false
    private var isConnect = false
    private var hasHost = false

    /// Reads `METHOD SP TARGET SP HTTP/1.x`, with single spaces and nothing else.
    mutating func readRequestLine(
        _ line: UnsafeRawBufferPointer,
        maximumTargetSize: Int
    ) throws(RequestRefusal) {
        let space = UInt8(ascii: " ")
        guard let first = line.firstIndex(of: space), first > 0,
            let last = line.lastIndex(of: space), last > first + 1
        else { throw .malformed("the request line has not three parts") }
        guard line[..<first].allSatisfy({ TokenCharacters.contains($0) }) else {
            throw .malformed("the method is not a token")
        }
        isConnect = line[..<first].elementsEqual("CONNECT".utf8)
        let target = line[(first + 1)..<last]
        guard target.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw .malformed("the target has a space or a control character")
        }
        guard UTF8Text.isValid(target) else { throw .malformed("the target is not UTF-8") }
        guard target.count <= maximumTargetSize else { throw .targetTooLong }
        try readVersion(UnsafeRawBufferPointer(rebasing: line[(last + 1)...]))
        hasRequestLine = true
    }

    private mutating func readVersion(
        _ version: UnsafeRawBufferPointer
    ) throws(RequestRefusal) {
        guard version.count == 8, version.starts(with: "HTTP/".utf8),
            version[6] == UInt8(ascii: "."), isDigit(version[5]), isDigit(version[7])
        else { throw .malformed("the request line has no HTTP version") }
        guard version[5] == UInt8(ascii: "1"), version[7] <= UInt8(ascii: "1") else {
            throw .version
        }
        isVersion10 = version[7] == UInt8(ascii: "0")
    }

    /// Reads a field line and keeps facts about framing and host.
    mutating func readFieldLine(_ line: UnsafeRawBufferPointer) throws(RequestRefusal) {
        let field = try FieldLine(line)
        switch field.name.count {
        case 4 where field.isNamed("host"): try readHost(field.value)
        case 14 where field.isNamed("content-length"): try readContentLength(field.value)
        case 17 where field.isNamed("transfer-encoding"): try readTransferEncoding(field)
        default: break
        }
    }

    /// Checks conditions on the whole head.
    func requireComplete() throws(RequestRefusal) {
        guard hasRequestLine else { throw .malformed("there is no request line") }
        // RFC 9112 §3.2.
        guard hasHost || isVersion10 else { throw .malformed("there is no Host") }
        // RFC 9112 §6.3 lets the coding win; a parser behind us that lets the length win reads
        // another request.
        guard !isChunked || contentLength == nil else {
            throw .malformed("there is a length beside the chunked coding")
        }
        // The parser takes further bytes for the content of the tunnel (RFC 9110 §9.3.6).
        guard !isConnect || !isChunked && contentLength == nil else {
            throw .malformed("CONNECT has no content")
        }
        // RFC 9112 §6.1: such a message is to be treated as faultily framed.
        guard !isChunked || !isVersion10 else {
            throw .malformed("HTTP/1.0 has no transfer codings")
        }
    }

    private mutating func readHost(_ value: UnsafeRawBufferPointer) throws(RequestRefusal) {
        guard !hasHost else { throw .malformed("there are two Host fields") }
        guard value.allSatisfy({ HostCharacters.contains($0) }), !value.isEmpty else {
            throw .malformed("the Host is no host")
        }
        hasHost = true
    }

    private mutating func readContentLength(
        _ value: UnsafeRawBufferPointer
    ) throws(RequestRefusal) {
        // Repeating the same length would be harmless, but no sound client does.
        guard contentLength == nil else { throw .malformed("there are two lengths") }
        // 18 digits fit into `Int64`.
        guard (1...18).contains(value.count), value.allSatisfy(isDigit) else {
            throw .malformed("the length is no number")
        }
        contentLength = value.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    }

    private mutating func readTransferEncoding(_ field: FieldLine) throws(RequestRefusal) {
        // The parser refuses a tab after the coding, but only after it has reported the head.
        guard !isChunked, !field.endsInTab, field.value.equalsIgnoringCase("chunked") else {
            throw .malformed("only the transfer coding chunked is understood, and once")
        }
        isChunked = true
    }
}

private func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
}

/// The visible characters of a host and its port, as a bitmap of two words.
private enum HostCharacters {
    private static let low = bits(0)
    private static let high = bits(64)

    @inline(__always)
    static func contains(_ byte: UInt8) -> Bool {
        guard byte < 128 else { return false }
        return (byte < 64 ? low >> UInt64(byte) : high >> UInt64(byte - 64)) & 1 == 1
    }

    private static func bits(_ start: UInt8) -> UInt64 {
        let others = Array(",/?#@\\\"<>{}|^`".utf8)
        return (start..<start + 64).reduce(0) { bits, byte in
            byte > 0x20 && byte < 0x7F && !others.contains(byte)
                ? bits | 1 << UInt64(byte - start) : bits
        }
    }
}
