import HTTPCaching
import HTTPTypes
import TieredCache

/// The playback sessions of bodies that cannot be revalidated.
///
/// A body without a validator that must be revalidated would be fetched anew for each range of a
/// player, possibly with other bytes each time. So its stored form is used during playback: until
/// ten seconds after the last response has ended, and not for a request from the first byte on,
/// with which playback starts.
final class PlayingSessions: Sendable {
    /// A key, and the request fields that select the representation.
    struct Item: Hashable {
        let key: CacheKey
        let fields: HTTPFields

        init(_ request: CacheRequest) {
            key = request.key
            fields = request.fields
        }
    }

    fileprivate struct Session {
        var answers = 0
        var lastEnd: MonotonicTime
    }

    /// How long a session lasts without a response.
    static let patience = Duration.seconds(10)
    private static let capacity = 512

    private let time: any TimeSource
    private let sessions = Guarded<[Item: Session]>([:])

    init(time: any TimeSource) {
        self.time = time
    }

    /// Whether the item has a session.
    func isPlayed(_ item: Item) -> Bool {
        let now = time.monotonicTime()
        return sessions.withLock { $0[item]?.goesOn(at: now) ?? false }
    }

    /// Keeps a session of the item open while `body` runs, and for ``patience`` after it.
    func play<Result>(_ item: Item, during body: () async throws -> Result) async rethrows -> Result
    {
        begin(item)
        defer { end(item) }
        return try await body()
    }

    private func begin(_ item: Item) {
        let now = time.monotonicTime()
        sessions.withLock { sessions in
            if sessions.count >= Self.capacity { sessions = sessions.filter { $1.goesOn(at: now) } }
            sessions[item, default: Session(lastEnd: now)].answers += 1
        }
    }

    private func end(_ item: Item) {
        let now = time.monotonicTime()
        sessions.withLock { sessions in
            sessions[item]?.answers -= 1
            sessions[item]?.lastEnd = now
        }
    }
}

extension PlayingSessions.Session {
    fileprivate func goesOn(at now: MonotonicTime) -> Bool {
        answers > 0 || lastEnd.duration(to: now) < PlayingSessions.patience
    }
}
