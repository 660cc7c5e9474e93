import HTTPCaching

/// The targets of permanent redirects (301, 308), remembered for a day.
struct PermanentRedirects: Sendable {
    /// After this time the redirect is followed again.
    static let lifetime = Duration.seconds(86_400)
    /// The maximum number of URLs; the oldest is forgotten for a new one.
    static let capacity = 256

    private struct Note {
        var target: TargetURI
        var expiry: MonotonicTime
    }

    private var notes: [TargetURI: Note] = [:]

    /// The new location of `target`, if known.
    func target(of target: TargetURI, now: MonotonicTime) -> TargetURI? {
        guard let note = notes[target], now < note.expiry else { return nil }
        return note.target
    }

    /// Remembers the end of a download's permanent redirects.
    ///
    /// - Parameters:
    ///   - permanent: the new location; nil if there is none, or no longer.
    ///   - target: the requested URL.
    ///   - now: the current time.
    mutating func remember(_ permanent: TargetURI?, of target: TargetURI, now: MonotonicTime) {
        guard let permanent else {
            notes[target] = nil
            return
        }
        // A known one keeps its expiry, so that the requested URL is tried again eventually.
        guard self.target(of: target, now: now) != permanent else { return }
        if notes[target] == nil, notes.count >= Self.capacity,
            let oldest = notes.min(by: { $0.value.expiry < $1.value.expiry })?.key
        {
            notes[oldest] = nil
        }
        notes[target] = Note(target: permanent, expiry: now.advanced(by: Self.lifetime))
    }
}
