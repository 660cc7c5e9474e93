import HTTPCaching

/// What origins were found to be unable to do, for some time: they get repaired.
struct HostMemory: Sendable {
    /// What an origin cannot do.
    struct Limits: OptionSet, Hashable, Sendable {
        let rawValue: UInt8

        /// It answers ranges wrongly: everything is asked for whole, in order.
        static let withoutRanges = Limits(rawValue: 1)
        /// It ignores ranges or their conditions: one request at a time for each body.
        static let withoutSegments = Limits(rawValue: 2)
    }

    /// After this time an origin is tried again.
    static let lifetime = Duration.seconds(3600)
    /// More origins than this are not remembered; the oldest is forgotten.
    static let capacity = 256

    private struct Note {
        var limits: Limits
        var expiry: MonotonicTime
    }

    private var notes: [TargetURI.Origin: Note] = [:]

    /// What is known of an origin now.
    func limits(of origin: TargetURI.Origin, now: MonotonicTime) -> Limits {
        guard let note = notes[origin], now < note.expiry else { return [] }
        return note.limits
    }

    mutating func remember(_ limits: Limits, of origin: TargetURI.Origin, now: MonotonicTime) {
        guard !limits.isEmpty else { return }
        let known = self.limits(of: origin, now: now)
        if notes[origin] == nil, notes.count >= Self.capacity,
            let oldest = notes.min(by: { $0.value.expiry < $1.value.expiry })?.key
        {
            notes[oldest] = nil
        }
        let expiry = now.advanced(by: Self.lifetime)
        notes[origin] = Note(limits: known.union(limits), expiry: expiry)
    }
}
