import HTTPCaching
import HTTPTypes
import TieredCache

/// Who plays something of which nobody can tell whether it is current.
///
/// A body without any validator that may not be used without asking would be fetched anew for each
/// range that a player asks for, and never twice the same. So what a player has been given goes on
/// to be used while it plays: until some seconds after the last answer has ended, and not for a
/// request from the first byte on, with which another play begins.
final class PlayingSessions: Sendable {
    /// What is played, and with which of the fields that select it.
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

    /// How long a player may take from one answer to the next.
    static let patience = Duration.seconds(10)
    private static let capacity = 512

    private let time: any TimeSource
    private let sessions = Guarded<[Item: Session]>([:])

    init(time: any TimeSource) {
        self.time = time
    }

    /// Whether somebody is playing it.
    func isPlayed(_ item: Item) -> Bool {
        let now = time.monotonicTime()
        return sessions.withLock { $0[item]?.goesOn(at: now) ?? false }
    }

    /// Notes that a player is given some of it, while `body` runs.
    func play<Result>(_ item: Item, _ body: () async throws -> Result) async rethrows -> Result {
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
