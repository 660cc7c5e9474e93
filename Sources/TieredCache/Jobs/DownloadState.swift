/// The state of a download job.
///
/// All states survive a restart, except that ``running`` becomes ``queued``: no process runs the
/// job then, and it is meant to continue.
public enum DownloadState: Hashable, Sendable {
    /// It waits for a download slot, or for a process that continues it.
    case queued
    /// Bytes arrive, or a retry is due.
    case running
    /// The machine has no network; continues by itself and counts no attempt.
    case waitingForNetwork
    /// Paused by a command; received bytes stay.
    case paused
    /// Cancelled by a command; continues only if it is resumed.
    case cancelled
    /// Failed.
    case failed(DownloadProblem)
    /// All bytes are stored; the job stays listed until it is acknowledged.
    case finished

    /// Whether it continues without a command once a process continues the jobs.
    public var isMeantToContinue: Bool {
        switch self {
        case .queued, .running, .waitingForNetwork: true
        case .failed(let problem): problem.isTransient
        case .paused, .cancelled, .finished: false
        }
    }

    /// Whether it has ended, unless it is resumed.
    public var isEnd: Bool {
        switch self {
        case .cancelled, .failed, .finished: true
        case .queued, .running, .waitingForNetwork, .paused: false
        }
    }

    /// The name of the case, for programs.
    public var name: String {
        switch self {
        case .queued: "queued"
        case .running: "running"
        case .waitingForNetwork: "waitingForNetwork"
        case .paused: "paused"
        case .cancelled: "cancelled"
        case .failed: "failed"
        case .finished: "finished"
        }
    }
}

/// The error of a failed job, in a form that survives a restart.
public struct DownloadProblem: Hashable, Sendable {
    /// The kind of failure.
    public let code: CacheError.Code
    /// One sentence for people.
    public let message: String
    /// The origin's status, for `.httpStatus`.
    public let status: Int?

    /// Keeps the code, message and status of an error.
    public init(_ error: CacheError) {
        code = error.code
        message = error.message
        status = error.status
    }

    init(code: CacheError.Code, message: String, status: Int?) {
        self.code = code
        self.message = message
        self.status = status
    }

    /// The error, without its cause.
    public var error: CacheError { CacheError(code, message, status: status) }

    /// Whether a later attempt may succeed without any change.
    public var isTransient: Bool { error.mayPass }
}
