import HTTPCaching

/// The bytes that a reader wants, resolved as far as the complete length is known.
struct WantedRange: Hashable, Sendable {
    /// The first byte.
    var start: Int64
    /// The offset after the last byte; nil: to an end that is not known yet.
    var end: Int64?

    /// To `Int64.max` where the end is not known.
    var bytes: Range<Int64> { start..<(end ?? .max) }

    /// How many bytes there are, as far as the end is known.
    var count: Int { Int((end ?? start) - start) }

    /// What was asked for, as far as that can be told; nil where not one byte of it exists, and for
    /// the last bytes of something of unknown length.
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

    /// Resolves what was asked for against what is known.
    ///
    /// - Returns: nil for a suffix of a representation whose length is not known.
    /// - Throws: `.rangeNotSatisfiable` if not one byte of the range exists.
    static func resolve(
        _ request: CacheRequest,
        completeLength: Int64?
    ) throws(CacheError) -> WantedRange? {
        if let wanted = WantedRange(request.range, completeLength: completeLength) { return wanted }
        guard let completeLength, let spec = request.range else { return nil }
        throw CacheError(
            .rangeNotSatisfiable,
            "bytes \(spec.fieldValue) of \(request.target.redacted) do not exist: "
                + "it has \(completeLength) bytes"
        )
    }

    /// Resolves what was asked for against a response that came through as it is.
    ///
    /// A range is one of a 200 whose length is known; any other answer is delivered whole.
    static func resolve(
        _ request: CacheRequest,
        _ head: StoredResponse,
        completeLength: Int64?
    ) throws(CacheError) -> WantedRange? {
        guard request.relay != nil, head.status != 200 || completeLength == nil else {
            return try resolve(request, completeLength: completeLength)
        }
        return WantedRange(start: 0, end: completeLength)
    }
}
