import HTTPTypes

/// What the fields of a head say about where the response ends (RFC 9112 §6, §9.3).
struct FieldFraming {
    private enum Coding {
        case chunked
        /// Not known here: the body ends with the connection (RFC 9112 §6.3).
        case unknown
    }

    private var length: Int64?
    private var coding: Coding?
    private var hasCodingField = false
    private var saysClose = false
    private var saysKeepAlive = false

    /// Takes note of a field, if it is one of these.
    mutating func read(
        _ name: HTTPField.Name,
        _ value: UnsafeRawBufferPointer
    ) throws(ResponseSyntaxError) {
        switch name {
        case .contentLength: try readLength(value)
        case .transferEncoding: try readCodings(value)
        case .connection: readOptions(value)
        default: break
        }
    }

    /// Several lengths that are equal are one (RFC 9112 §6.3).
    private mutating func readLength(
        _ value: UnsafeRawBufferPointer
    ) throws(ResponseSyntaxError) {
        for member in value.members {
            guard !member.isEmpty, member.allSatisfy(\.isDigit) else { throw .invalidLength }
            var number: Int64 = 0
            for digit in member {
                let (tenfold, isOver) = number.multipliedReportingOverflow(by: 10)
                let (sum, isOverSum) = tenfold.addingReportingOverflow(Int64(digit - .zero))
                guard !isOver, !isOverSum else { throw .invalidLength }
                number = sum
            }
            guard length ?? number == number else { throw .twoLengths }
            length = number
        }
    }

    private mutating func readCodings(
        _ value: UnsafeRawBufferPointer
    ) throws(ResponseSyntaxError) {
        hasCodingField = true
        for member in value.members where !member.isEqual("identity") {
            // What is cut to chunks beside another coding can be read in two ways, and so can a
            // list with an empty member.
            guard coding != .chunked, coding == nil || !member.isEqual("chunked") else {
                throw .severalCodings
            }
            coding = member.isEqual("chunked") ? .chunked : .unknown
        }
    }

    private mutating func readOptions(_ value: UnsafeRawBufferPointer) {
        for member in value.members {
            if member.isEqual("close") { saysClose = true }
            if member.isEqual("keep-alive") { saysKeepAlive = true }
        }
    }

    /// How the response ends.
    ///
    /// - Parameter isBodyless: whether method or status allow no body.
    /// - Returns: where its body ends.
    /// - Throws: where two readers could see two ends.
    func resolved(isBodyless: Bool) throws(ResponseSyntaxError) -> ResponseHead.Framing {
        guard length == nil || coding == nil else { throw .lengthBesideCoding }
        guard !isBodyless else { return .none }
        return switch coding {
        case .chunked: .chunked
        case .unknown: .untilClose
        case nil: length.map { .length($0) } ?? .untilClose
        }
    }

    func mayPersist(isHTTP10: Bool) -> Bool {
        guard !saysClose else { return false }
        // What frames by chunks in HTTP/1.0 cannot be trusted to end where it says (§6.1).
        return isHTTP10 ? saysKeepAlive && !hasCodingField : true
    }
}

extension UnsafeRawBufferPointer {
    /// The members of a comma-separated list, without the spaces around them.
    fileprivate var members: [Slice<UnsafeRawBufferPointer>] {
        self[...].split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            .map(\.trimmingSpaces)
    }
}

extension Slice<UnsafeRawBufferPointer> {
    /// Whether the bytes are a word, in any case of its letters.
    fileprivate func isEqual(_ word: StaticString) -> Bool {
        word.withUTF8Buffer { word in
            count == word.count
                && zip(self, word).allSatisfy { byte, letter in
                    byte == letter
                        || letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "z")
                            && byte == letter - 0x20
                }
        }
    }
}
