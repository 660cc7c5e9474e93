import HTTPCaching

/// Where redirects that hold for good (301, 308) were found to lead, for a day.
struct PermanentRedirects: Sendable {
    /// After this time the requested URL is asked again.
    static let lifetime = Duration.seconds(86_400)
    /// More URLs than this are not remembered; the oldest is forgotten.
    static let capacity = 256

    private struct Note {
        var target: TargetURI
        var expiry: MonotonicTime
    }

    private var notes: [TargetURI: Note] = [:]

    /// Where `target` has moved, if that is known.
    func target(of target: TargetURI, now: MonotonicTime) -> TargetURI? {
        guard let note = notes[target], now < note.expiry else { return nil }
        return note.target
    }

    /// Takes in where a download ended up.
    ///
    /// - Parameters:
    ///   - permanent: where it has moved for good; nil where it has not, or no longer.
    ///   - target: the requested URL.
    ///   - now: the present instant.
    mutating func remember(_ permanent: TargetURI?, of target: TargetURI, now: MonotonicTime) {
        guard let permanent else {
            notes[target] = nil
            return
        }
        // A known one keeps its expiry, so that the requested URL is asked again in the end.
        guard self.target(of: target, now: now) != permanent else { return }
        if notes[target] == nil, notes.count >= Self.capacity,
            let oldest = notes.min(by: { $0.value.expiry < $1.value.expiry })?.key
        {
            notes[oldest] = nil
        }
        notes[target] = Note(target: permanent, expiry: now.advanced(by: Self.lifetime))
    }
}
