import HTTPTypes

/// Reads the head of a response from its bytes, which are all there (RFC 9112 §4, §5).
///
/// As lenient as curl and browsers are, where that changes neither where a response ends nor what
/// its fields mean; docs/transport.md has the table.
struct HeadParser {
    /// The most fields of a head.
    static let maximumFields = 2000

    private let bytes: UnsafeRawBufferPointer
    private var position = 0
    private var fields = HTTPFields()
    private var framing = FieldFraming()

    /// - Parameters:
    ///   - bytes: the head to the end of its empty line.
    ///   - isBodyless: whether the method of the request allows no body.
    /// - Returns: the head.
    /// - Throws: what docs/transport.md says is refused.
    static func parse(
        _ bytes: UnsafeRawBufferPointer,
        isBodyless: Bool
    ) throws(ResponseSyntaxError) -> ResponseHead {
        var parser = HeadParser(bytes: bytes)
        let start = try parser.readStatusLine()
        while let line = try parser.nextLine() { try parser.readField(line) }
        let framing = try parser.framing.resolved(
            isBodyless: isBodyless || start.status.hasNoBody
        )
        return ResponseHead(
            response: HTTPResponse(status: start.status, headerFields: parser.fields),
            framing: framing,
            mayPersist: parser.framing.mayPersist(isHTTP10: start.isHTTP10)
                && framing != .untilClose && start.status != .switchingProtocols
        )
    }

    private init(bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        fields.reserveCapacity(16)
    }

    // MARK: Lines

    /// The next line without its end, which is CRLF or LF; nil for the empty line.
    private mutating func nextLine() throws(ResponseSyntaxError) -> UnsafeRawBufferPointer? {
        let start = position
        guard let end = bytes.firstLineFeed(from: start) else { throw .unfinished }
        position = end + 1
        let isCRLF = end > start && bytes[end - 1] == .carriageReturn
        let line = UnsafeRawBufferPointer(rebasing: bytes[start..<(isCRLF ? end - 1 : end)])
        return line.isEmpty ? nil : line
    }

    // MARK: The status line

    private struct Start {
        let status: HTTPResponse.Status
        let isHTTP10: Bool
    }

    /// `HTTP/1.1 200 OK`; also without a reason, with several spaces, and `ICY 200 OK`.
    private mutating func readStatusLine() throws(ResponseSyntaxError) -> Start {
        guard let line = try nextLine() else { throw .noStatusLine }
        let isICY = line.starts(with: "ICY ".utf8)
        let isHTTP =
            line.starts(with: "HTTP/1.".utf8) && line.count > 8 && line[7].isDigit
            && line[8] == .space
        guard isICY || isHTTP else { throw .noStatusLine }
        let rest = UnsafeRawBufferPointer(rebasing: line[(isICY ? 4 : 9)...].trimmingSpaces)
        guard rest.count >= 3, rest[0].isDigit, rest[1].isDigit, rest[2].isDigit,
            rest.count == 3 || rest[3] == .space
        else { throw .noStatusLine }
        let code = rest[..<3].reduce(0) { $0 * 10 + Int($1 - .zero) }
        guard code >= 100 else { throw .lowStatus }
        let reason = rest.count == 3 ? rest[3...] : rest[4...]
        guard !reason.contains(where: { $0 == 0 || $0 == .carriageReturn }) else {
            throw .controlCharacter
        }
        return Start(
            status: .of(code, reason: reason),
            isHTTP10: isICY || line[7] == .zero
        )
    }

    // MARK: Fields

    private mutating func readField(
        _ line: UnsafeRawBufferPointer
    ) throws(ResponseSyntaxError) {
        guard fields.count < Self.maximumFields else { throw .tooManyFields }
        // A fold belongs to a field before it, which has read it.
        guard line[0] != .space, line[0] != .tab else { throw .foldWithoutField }
        guard let colon = line.firstIndex(of: .colon) else { throw .noColon }
        let spelled = UnsafeRawBufferPointer(rebasing: line[..<colon].droppingSpacesAtEnd)
        guard let name = FieldNames.name(spelled) else { throw .invalidName }
        let first = line[(colon + 1)...]
        guard startsWithSpace(at: position) else { return try add(name, first.trimmingSpaces) }
        var unfolded = Array(first.trimmingSpaces)
        while startsWithSpace(at: position), let fold = try nextLine() {
            // Each fold is a space (RFC 9112 §5.2).
            unfolded.append(.space)
            unfolded += fold[...].trimmingSpaces
        }
        try unfolded.withUnsafeBufferPointer { bytes throws(ResponseSyntaxError) in
            try add(name, UnsafeRawBufferPointer(bytes)[...].trimmingSpaces)
        }
    }

    private func startsWithSpace(at index: Int) -> Bool {
        index < bytes.count && (bytes[index] == .space || bytes[index] == .tab)
    }

    private mutating func add(
        _ name: HTTPField.Name,
        _ value: Slice<UnsafeRawBufferPointer>
    ) throws(ResponseSyntaxError) {
        let bytes = UnsafeRawBufferPointer(rebasing: value)
        // Others that are no text become spaces (RFC 9110 §5.5); these end a line elsewhere.
        guard !bytes.contains(where: { $0 == 0 || $0 == .carriageReturn }) else {
            throw .controlCharacter
        }
        try framing.read(name, bytes)
        fields.append(HTTPField(name: name, value: bytes.text(isReference: name.isOfReference)))
    }
}

extension HTTPResponse.Status {
    /// The status; a known one without a reason of its own is made without a string.
    fileprivate static func of(
        _ code: Int,
        reason: Slice<UnsafeRawBufferPointer>
    ) -> HTTPResponse.Status {
        if code == 200, reason.elementsEqual("OK".utf8) { return .ok }
        return HTTPResponse.Status(
            code: code,
            reasonPhrase: String(decoding: reason.trimmingSpaces, as: UTF8.self)
        )
    }

    /// Whether a response has no body, whatever its fields say (RFC 9112 §6.3).
    fileprivate var hasNoBody: Bool {
        code < 200 || self == .noContent || self == .notModified
    }
}

extension HTTPField.Name {
    /// Whether the value is a URI reference.
    fileprivate var isOfReference: Bool { self == .location || self == .contentLocation }
}

extension UnsafeRawBufferPointer {
    /// The bytes as text; those that are no text become U+FFFD, in a reference `%XX`.
    fileprivate func text(isReference: Bool) -> String {
        guard isReference, String(validating: self, as: UTF8.self) == nil else {
            return String(decoding: self, as: UTF8.self)
        }
        let digits = Array("0123456789ABCDEF".utf8)
        let escaped = flatMap { byte in
            byte < 0x80
                ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return String(decoding: escaped, as: UTF8.self)
    }
}
