import HTTPCaching
import TieredCache

/// The value of `Date`, formatted once a second.
final class DateText: Sendable {
    private struct Written {
        var second: Int64 = .min
        var text = ""
    }

    private let time: any TimeSource
    private let written = Guarded(Written())

    init(time: any TimeSource = SystemTimeSource()) {
        self.time = time
    }

    /// The present in the format of RFC 9110 §5.6.7.
    var now: String {
        let now = time.wallTime()
        return written.withLock { written in
            if written.second != now.seconds {
                written.second = now.seconds
                written.text = HTTPDate.format(now)
            }
            return written.text
        }
    }
}
