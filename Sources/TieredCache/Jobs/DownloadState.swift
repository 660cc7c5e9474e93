/// What a download job is doing, or why it does nothing.
///
/// All of them survive a restart, except that a job which was ``running`` is ``queued`` afterwards:
/// nobody runs it any more, and it was meant to continue.
public enum DownloadState: Hashable, Sendable {
    /// It waits for a download slot, or for a process that continues it.
    case queued
    /// Bytes are coming, or a retry is due.
    case running
    /// The machine has no network; goes on by itself and spends no attempt.
    case waitingForNetwork
    /// Somebody paused it; what arrived is kept.
    case paused
    /// Somebody cancelled it; goes on only where somebody resumes it.
    case cancelled
    /// It gave up.
    case failed(DownloadProblem)
    /// All bytes are stored; kept until it is acknowledged.
    case finished

    /// Whether it goes on without anybody's help, once a process continues it.
    public var isMeantToContinue: Bool {
        switch self {
        case .queued, .running, .waitingForNetwork: true
        case .failed(let problem): problem.isTransient
        case .paused, .cancelled, .finished: false
        }
    }

    /// Whether there is nothing left to wait for, unless somebody resumes it.
    public var isEnd: Bool {
        switch self {
        case .cancelled, .failed, .finished: true
        case .queued, .running, .waitingForNetwork, .paused: false
        }
    }

    /// One word for programs: the case's name.
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

/// Why a job gave up: an error, in a form that survives a restart.
public struct DownloadProblem: Hashable, Sendable {
    /// The kind of failure.
    public let code: CacheError.Code
    /// One sentence for people.
    public let message: String
    /// The origin's status, for `.httpStatus`.
    public let status: Int?

    /// Takes the lasting part of an error.
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

    /// The error again; its cause is lost.
    public var error: CacheError { CacheError(code, message, status: status) }

    /// Whether trying again later may help without anybody changing anything.
    public var isTransient: Bool { error.mayPass }
}
