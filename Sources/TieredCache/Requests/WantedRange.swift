import HTTPCaching

/// The bytes that a request wants, resolved as far as the complete length is known.
struct WantedRange: Hashable, Sendable {
    /// The first byte.
    var start: Int64
    /// The offset after the last byte; nil for an end that is not known yet.
    var end: Int64?

    /// The range, to `Int64.max` if the end is unknown.
    var bytes: Range<Int64> { start..<(end ?? .max) }

    /// The number of bytes; 0 if the end is unknown.
    var count: Int { Int((end ?? start) - start) }

    /// Whether it has all bytes of a body of that length; or may have, of one of unknown length.
    func isAll(of completeLength: Int64?) -> Bool {
        start == 0 && (end ?? .max) >= (completeLength ?? 0)
    }

    /// Resolves a range; nil if not one byte of it exists, and for a suffix of a representation of
    /// unknown length.
    init?(_ spec: ByteRangeSpec?, completeLength: Int64?) {
        switch (spec, completeLength) {
        case (nil, _):
            self.init(start: 0, end: completeLength)
        case (let spec?, let length?):
            guard let range = spec.resolved(completeLength: length) else { return nil }
            self.init(range)
        case (.bounded(let range)?, nil):
            self.init(range)
        case (.openEnded(let start)?, nil):
            self.init(start: start, end: nil)
        case (.suffix?, nil):
            return nil
        }
    }

    init(_ range: Range<Int64>) {
        self.init(start: range.lowerBound, end: range.upperBound)
    }

    init(start: Int64, end: Int64?) {
        self.start = start
        self.end = end
    }

    /// Resolves the range of a request against the complete length.
    ///
    /// - Returns: nil for a suffix of a representation of unknown length.
    /// - Throws: `.rangeNotSatisfiable` if not one byte of the range exists.
    static func resolve(
        for request: CacheRequest,
        completeLength: Int64?
    ) throws(CacheError) -> WantedRange? {
        if let wanted = WantedRange(request.range, completeLength: completeLength) { return wanted }
        guard let completeLength, let spec = request.range else { return nil }
        var error = CacheError(
            .rangeNotSatisfiable,
            "bytes \(spec.fieldValue) of \(request.target.redacted) do not exist: "
                + "it has \(completeLength) bytes"
        )
        error.completeLength = completeLength
        throw error
    }

    /// Resolves the range of a request against a response that is relayed unchanged.
    ///
    /// A range applies to a 200 of known length; any other response is delivered whole.
    static func resolve(
        for request: CacheRequest,
        head: StoredResponse,
        completeLength: Int64?
    ) throws(CacheError) -> WantedRange? {
        guard request.relay != nil, head.status != 200 || completeLength == nil else {
            return try resolve(for: request, completeLength: completeLength)
        }
        return WantedRange(start: 0, end: completeLength)
    }
}
