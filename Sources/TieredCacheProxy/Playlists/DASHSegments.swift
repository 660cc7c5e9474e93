/// The segmentation of a representation; inner levels inherit values that they do not give.
struct DASHSegments: Hashable, Sendable {
    /// An `S` of a timeline.
    struct Span: Hashable, Sendable {
        var time: Int64?
        var duration: Int64
        var repeats: Int64
    }

    static let maximumCount = 100_000
    /// The most bytes that a template may produce, or that are read without producing any.
    private static let maximumSize = 16 << 20

    var media: String?
    var initialization: String?
    var timescale: Int64 = 1
    var duration: Int64?
    var startNumber: Int64 = 1
    var endNumber: Int64?
    var timeOffset: Int64 = 0
    var timeline: [Span] = []
    /// The addresses of a list.
    var list: [String] = []
    /// Whether there is a template or a list; otherwise the base itself is the only segment.
    var isCut = false

    /// The addresses of all segments, relative to the representation's base.
    ///
    /// - Parameters:
    ///   - values: the values for templates.
    ///   - seconds: the duration of the period; nil if unknown.
    ///   - limit: the most addresses.
    /// - Returns: the addresses in order, the initialization segment first.
    func addresses(
        _ values: DASHTemplate.Values,
        seconds: Double?,
        atMost limit: Int
    ) -> [String] {
        guard limit > 0 else { return [] }
        // A single file; its index describes the parts.
        guard isCut else { return [""] }
        var result: [String] = []
        if let initialization, let address = DASHTemplate(initialization).address(values) {
            result.append(address)
        }
        guard let media else {
            return result + list.prefix(min(Self.maximumCount, limit - result.count))
        }
        var values = values
        var size = 0
        let most = min(limit, Self.maximumCount)
        for (number, time) in timeline.isEmpty
            ? evenly(seconds: seconds, atMost: most) : spans(seconds: seconds, atMost: most)
        {
            (values.number, values.time) = (number, time)
            guard result.count < limit, size < Self.maximumSize,
                let address = DASHTemplate(media).address(values)
            else { return result }
            size += max(address.utf8.count, media.utf8.count)
            result.append(address)
        }
        return result
    }

    /// Segments of equal duration that fill the period, at most `limit`, as number and time.
    private func evenly(seconds: Double?, atMost limit: Int) -> [(Int64, Int64)] {
        guard let duration, duration > 0, timescale > 0 else { return [] }
        var count = Int64(Self.maximumCount)
        if let endNumber {
            let (last, overflow) = endNumber.subtractingReportingOverflow(startNumber)
            count = overflow || last >= count ? count : last + 1
        } else if let seconds {
            let exact = seconds * Double(timescale) / Double(duration)
            // A tiny excess over a whole number is a rounding error of the manifest.
            count = Int64(min(Double(Self.maximumCount), max(0, (exact - 1e-6).rounded(.up))))
        } else {
            return []
        }
        return (0..<max(0, min(count, Int64(limit)))).compactMap { index in
            let (number, overflow) = startNumber.addingReportingOverflow(index)
            let (time, isTooLate) = index.multipliedReportingOverflow(by: duration)
            return overflow || isTooLate ? nil : (number, time)
        }
    }

    /// The segments of the timeline, at most `limit`, as number and time.
    private func spans(seconds: Double?, atMost limit: Int) -> [(Int64, Int64)] {
        var result: [(Int64, Int64)] = []
        var (number, time) = (startNumber, timeline.first?.time ?? 0)
        for (index, span) in timeline.enumerated() where span.duration > 0 {
            time = span.time ?? time
            var left = span.repeats
            // ISO/IEC 23009-1 §5.3.9.6: a negative `@r` repeats until the next `S`, or the end of
            // the period.
            if left < 0 {
                let next = index + 1 < timeline.count ? timeline[index + 1].time : nil
                guard let end = next ?? periodEnd(seconds), end > time else { break }
                let (length, overflow) = end.subtractingReportingOverflow(time)
                left = overflow ? .max : (length - 1) / span.duration
            }
            while left >= 0, result.count < limit {
                result.append((number, time))
                left -= 1
                let (after, overflow) = time.addingReportingOverflow(span.duration)
                let (following, isTooLarge) = number.addingReportingOverflow(1)
                guard !overflow, !isTooLarge else { return result }
                (time, number) = (after, following)
            }
        }
        return result
    }

    private func periodEnd(_ seconds: Double?) -> Int64? {
        guard let seconds, timescale > 0 else { return nil }
        let end = (seconds * Double(timescale)).rounded() + Double(timeOffset)
        // Below 2^63: the conversion traps otherwise.
        return abs(end) < 9e18 ? Int64(end) : nil
    }
}
