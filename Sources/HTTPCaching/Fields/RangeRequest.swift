/// One element of a `Range` field in bytes (RFC 9110 §14.1.2).
public enum ByteRangeSpec: Hashable, Sendable {
    /// `a-b` on the wire; half-open here, never empty.
    case bounded(Range<Int64>)
    /// `a-`: from an offset to the end.
    case openEnded(from: Int64)
    /// `-n`: the last n bytes.
    case suffix(Int64)

    /// The selected bytes, clamped to `completeLength`; nil if none of them exists.
    public func resolved(completeLength: Int64) -> Range<Int64>? {
        let first: Int64
        var end = completeLength
        switch self {
        case .bounded(let range):
            first = range.lowerBound
            end = min(end, range.upperBound)
        case .openEnded(let offset):
            first = offset
        case .suffix(let count):
            first = max(0, completeLength - max(0, count))
        }
        return first >= 0 && first < end ? first..<end : nil
    }

    /// The element in wire format.
    public var fieldValue: String {
        switch self {
        case .bounded(let range): "\(range.lowerBound)-\(range.upperBound - 1)"
        case .openEnded(let offset): "\(offset)-"
        case .suffix(let count): "-\(count)"
        }
    }

    /// Reads `a-b`, `a-` or `-n`; numbers above ``ByteOffset/limit`` count as that.
    init?(_ scanner: inout FieldScanner) {
        let first = scanner.saturatingDigits()
        guard scanner.skip("-") else { return nil }
        switch (first, scanner.saturatingDigits()) {
        case (nil, nil):
            return nil
        case (nil, let count?):
            self = ByteRangeSpec.suffix(count).clamped
        case (let first?, nil):
            self = ByteRangeSpec.openEnded(from: first).clamped
        case (let first?, let last?):
            // RFC 9110 §14.1.1: such a range is invalid, and the whole field is ignored then.
            guard first <= last else { return nil }
            // `last + 1` might not fit, and no body reaches so far.
            let isOpen = last >= ByteOffset.limit
            let spec: ByteRangeSpec = isOpen ? .openEnded(from: first) : .bounded(first..<last + 1)
            self = spec.clamped
        }
    }
}

/// A `Range` request in bytes (RFC 9110 §14.2).
public struct RangeRequest: Hashable, Sendable {
    /// The requested ranges in order; at least one.
    public let specs: [ByteRangeSpec]

    /// Creates a request for one range.
    public init(_ spec: ByteRangeSpec) {
        specs = [spec]
    }

    /// Reads a field value.
    ///
    /// - Returns: nil for another unit or anything malformed: such a field must be ignored, so that
    ///   the whole representation is sent (RFC 9110 §14.2).
    public init?(_ fieldValue: some StringProtocol) {
        var scanner = FieldScanner(fieldValue.trimmingWhitespace)
        guard scanner.skip(ignoringCase: "bytes"), scanner.skip("=") else { return nil }
        var specs: [ByteRangeSpec] = []
        repeat {
            scanner.skipWhitespace()
            // RFC 9110 §5.6.1.2: empty elements are ignored. `continue` goes on at the condition
            // below.
            guard !scanner.isAtEnd, scanner.next != UInt8(ascii: ",") else { continue }
            guard let spec = ByteRangeSpec(&scanner) else { return nil }
            specs.append(spec)
            scanner.skipWhitespace()
        } while scanner.skip(",")
        guard scanner.isAtEnd, !specs.isEmpty else { return nil }
        self.specs = specs
    }

    /// The field value.
    public var fieldValue: String {
        "bytes=" + specs.map(\.fieldValue).joined(separator: ", ")
    }

    /// The response to a range request.
    public enum Resolution: Hashable, Sendable {
        /// These bytes, as a 206.
        case partial(Range<Int64>)
        /// The whole representation, as a 200; see ``RangeRequest/resolution(completeLength:)``.
        case whole
        /// No bytes, as a 416 with `bytes */N`.
        case unsatisfiable
    }

    /// Decides the response from a representation of `completeLength` bytes.
    ///
    /// Several ranges get the whole representation, which RFC 9110 §14.2 allows and every player
    /// accepts, unless only one of them is satisfiable. A suffix of an empty representation is the
    /// whole of it.
    public func resolution(completeLength: Int64) -> Resolution {
        let ranges = specs.compactMap { $0.resolved(completeLength: completeLength) }
        if let range = ranges.first {
            return ranges.count == 1 ? .partial(range) : .whole
        }
        let asksForSuffix = specs.contains { spec in
            guard case .suffix(let count) = spec else { return false }
            return count > 0
        }
        return completeLength == 0 && asksForSuffix ? .whole : .unsatisfiable
    }
}
