/// How a representation is cut into segments; levels below take over what they do not say.
struct DASHSegments: Hashable, Sendable {
    /// An `S` of a timeline.
    struct Span: Hashable, Sendable {
        var time: Int64?
        var duration: Int64
        var repeats: Int64
    }

    static let maximumCount = 100_000
    /// Of what a template makes, or what is read of it to make nothing, in bytes.
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
    /// Whether there is a template or a list, so that the base is no segment itself.
    var isCut = false

    /// The addresses of all segments, relative to the representation's base.
    ///
    /// - Parameters:
    ///   - values: what templates put in.
    ///   - seconds: how long the period is; nil where that is not known.
    ///   - limit: how many there may be.
    /// - Returns: the addresses in order, that of the initialization first.
    func addresses(
        _ values: DASHTemplate.Values,
        seconds: Double?,
        atMost limit: Int
    ) -> [String] {
        guard limit > 0 else { return [] }
        // One file, of which the index tells the parts.
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
        for (number, time) in timeline.isEmpty ? evenly(seconds, most) : spans(seconds, most) {
            (values.number, values.time) = (number, time)
            guard result.count < limit, size < Self.maximumSize,
                let address = DASHTemplate(media).address(values)
            else { return result }
            size += max(address.utf8.count, media.utf8.count)
            result.append(address)
        }
        return result
    }

    /// Segments of one duration, as many as fill the period, and at most `limit`.
    private func evenly(_ seconds: Double?, _ limit: Int) -> [(Int64, Int64)] {
        guard let duration, duration > 0, timescale > 0 else { return [] }
        var count = Int64(Self.maximumCount)
        if let endNumber {
            let (last, overflow) = endNumber.subtractingReportingOverflow(startNumber)
            count = overflow || last >= count ? count : last + 1
        } else if let seconds {
            let exact = seconds * Double(timescale) / Double(duration)
            // A hair more than a whole number is a rounding of the manifest's.
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

    /// Segments as a timeline names them, at most `limit`.
    private func spans(_ seconds: Double?, _ limit: Int) -> [(Int64, Int64)] {
        var result: [(Int64, Int64)] = []
        var (number, time) = (startNumber, timeline.first?.time ?? 0)
        for (index, span) in timeline.enumerated() where span.duration > 0 {
            time = span.time ?? time
            var left = span.repeats
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
        return abs(end) < 9e18 ? Int64(end) : nil
    }
}
