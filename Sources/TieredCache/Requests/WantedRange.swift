import HTTPCaching

/// The bytes that a reader wants, resolved as far as the complete length is known.
struct WantedRange: Hashable, Sendable {
    /// The first byte.
    var start: Int64
    /// The offset after the last byte; nil: to an end that is not known yet.
    var end: Int64?

    /// How many bytes there are, as far as the end is known.
    var count: Int { Int((end ?? start) - start) }

    /// Resolves what was asked for against what is known.
    ///
    /// - Returns: nil for a suffix of a representation whose length is not known.
    /// - Throws: `.rangeNotSatisfiable` if not one byte of the range exists.
    static func resolve(
        _ request: CacheRequest,
        completeLength: Int64?
    ) throws(CacheError) -> WantedRange? {
        guard let spec = request.range else { return WantedRange(start: 0, end: completeLength) }
        guard let completeLength else { return unresolved(spec) }
        guard let range = spec.resolved(completeLength: completeLength) else {
            throw CacheError(
                .rangeNotSatisfiable,
                "bytes \(spec.fieldValue) of \(request.target.redacted) do not exist: "
                    + "it has \(completeLength) bytes"
            )
        }
        return WantedRange(start: range.lowerBound, end: range.upperBound)
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

    private static func unresolved(_ spec: ByteRangeSpec) -> WantedRange? {
        switch spec {
        case .bounded(let range): WantedRange(start: range.lowerBound, end: range.upperBound)
        case .openEnded(let start): WantedRange(start: start, end: nil)
        case .suffix: nil
        }
    }
}
