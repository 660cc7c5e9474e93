import HTTPCaching

/// Limitations of origins, remembered for some time: they may be repaired.
struct HostTraits: Sendable {
    /// The limitations of an origin.
    struct Limits: OptionSet, Hashable, Sendable {
        let rawValue: UInt8

        /// It mishandles ranges: bodies are requested as a whole, in order.
        static let withoutRanges = Limits(rawValue: 1)
        /// It ignores ranges or their conditions: one request at a time for each body.
        static let withoutSegments = Limits(rawValue: 2)
        /// Its responses became slow once, and shorter ones were no faster.
        static let slowAnyway = Limits(rawValue: 4)
    }

    /// After this time a limitation is forgotten.
    static let lifetime = Duration.seconds(3600)
    /// The maximum number of origins; the oldest is forgotten for a new one.
    static let capacity = 256

    private struct Note {
        var limits: Limits
        /// The length of responses that it sends fast, if it throttles longer ones, in bytes.
        var fastLength: Int64?
        var expiry: MonotonicTime
    }

    private var notes: [TargetURI.Origin: Note] = [:]

    /// The known limitations of an origin.
    func limits(of origin: TargetURI.Origin, now: MonotonicTime) -> Limits {
        guard let note = notes[origin], now < note.expiry else { return [] }
        return note.limits
    }

    /// The length of responses that an origin sends fast, if it is known to throttle longer ones.
    func fastLength(of origin: TargetURI.Origin, now: MonotonicTime) -> Int64? {
        guard let note = notes[origin], now < note.expiry else { return nil }
        return note.fastLength
    }

    mutating func remember(
        _ limits: Limits,
        fastLength: Int64? = nil,
        of origin: TargetURI.Origin,
        now: MonotonicTime
    ) {
        guard !limits.isEmpty || fastLength != nil else { return }
        let known = self.limits(of: origin, now: now)
        let knownLength = self.fastLength(of: origin, now: now)
        if notes[origin] == nil, notes.count >= Self.capacity,
            let oldest = notes.min(by: { $0.value.expiry < $1.value.expiry })?.key
        {
            notes[oldest] = nil
        }
        let expiry = now.advanced(by: Self.lifetime)
        notes[origin] = Note(
            limits: known.union(limits),
            fastLength: fastLength ?? knownLength,
            expiry: expiry
        )
    }
}
