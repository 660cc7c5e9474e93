import TieredCache

/// The documented exit codes, most of them from `sysexits.h`.
enum ExitStatus: Int32, Equatable {
    case done = 0
    case usage = 64
    case notCached = 66
    case originFailed = 69
    case localFailed = 74
    /// A claim of `demo` does not hold: an error in this program.
    case demoFailed = 70
    case notOwner = 75
    case interrupted = 130

    /// The code for an error of the engine.
    init(_ code: CacheError.Code) {
        switch code {
        case .invalidArgument, .invalidURL: self = .usage
        case .notCached: self = .notCached
        case .notOwner: self = .notOwner
        case .cancelled: self = .interrupted
        case .localStorage, .formatTooNew, .notStorable, .shutDown: self = .localFailed
        // All other failures of an origin: status, timeout, change, range.
        default: self = .originFailed
        }
    }
}
