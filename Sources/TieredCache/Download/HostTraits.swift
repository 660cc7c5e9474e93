import HTTPCaching

/// What origins were found to be unable to do, for some time: they get repaired.
struct HostTraits: Sendable {
    /// What an origin cannot do.
    struct Limits: OptionSet, Hashable, Sendable {
        let rawValue: UInt8

        /// It answers ranges wrongly: everything is asked for whole, in order.
        static let withoutRanges = Limits(rawValue: 1)
        /// It ignores ranges or their conditions: one request at a time for each body.
        static let withoutSegments = Limits(rawValue: 2)
        /// Its answers got slow once, and shorter ones were no faster.
        static let slowAnyway = Limits(rawValue: 4)
    }

    /// After this time an origin is tried again.
    static let lifetime = Duration.seconds(3600)
    /// More origins than this are not remembered; the oldest is forgotten.
    static let capacity = 256

    private struct Note {
        var limits: Limits
        /// The length of the answers that it sends fast, where it throttles longer ones.
        var fastLength: Int64?
        var expiry: MonotonicTime
    }

    private var notes: [TargetURI.Origin: Note] = [:]

    /// What is known of an origin now.
    func limits(of origin: TargetURI.Origin, now: MonotonicTime) -> Limits {
        guard let note = notes[origin], now < note.expiry else { return [] }
        return note.limits
    }

    /// The length of answers that an origin sends fast, where it is known to throttle longer ones.
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
