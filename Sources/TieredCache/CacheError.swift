package import HTTPCaching

/// What failed, for which URL or file, and what to do about it.
///
/// A struct with a code, so that a new code breaks no program. The description is one line for
/// people; it never contains userinfo, authorization or cookies.
public struct CacheError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure; compare with the static members.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Kind: String {
            case invalidArgument, invalidURL, notCached, originFailed, httpStatus, timedOut
            case representationChanged, rangeNotSatisfiable, localStorage, formatTooNew
            case notOwner, notStorable, integrityFailed, cancelled, interrupted, shutDown
            case busy
        }

        private let kind: Kind

        private init(_ kind: Kind) {
            self.kind = kind
        }

        /// The code with a name that ``description`` gave; nil for a name of another version.
        init?(_ name: String) {
            guard let kind = Kind(rawValue: name) else { return nil }
            self.kind = kind
        }

        /// The code's name, as its static member is spelled.
        public var description: String { kind.rawValue }

        /// An argument or a configuration value that makes no sense.
        public static let invalidArgument = Code(.invalidArgument)
        /// Not an absolute `http` or `https` URL.
        public static let invalidURL = Code(.invalidURL)
        /// The policy forbids the origin and the cache does not hold what was asked.
        public static let notCached = Code(.notCached)
        /// The origin could not be reached, or broke the protocol.
        public static let originFailed = Code(.originFailed)
        /// The origin's final status is 400 or more; ``CacheError/status`` names it.
        public static let httpStatus = Code(.httpStatus)
        /// No byte arrived for the configured time.
        public static let timedOut = Code(.timedOut)
        /// The representation changed at the origin while its bytes were being delivered.
        public static let representationChanged = Code(.representationChanged)
        /// The range starts at or beyond the end of the representation (RFC 9110 §15.5.17).
        public static let rangeNotSatisfiable = Code(.rangeNotSatisfiable)
        /// The disk refused: full, read-only, failing, or no permission.
        public static let localStorage = Code(.localStorage)
        /// The directory was written by a newer version; nothing in it was touched.
        public static let formatTooNew = Code(.formatTooNew)
        /// Another process owns the directory.
        public static let notOwner = Code(.notOwner)
        /// The response may not or cannot be stored, and storing was the purpose.
        public static let notStorable = Code(.notStorable)
        /// The bytes do not have the digest that was expected of them, also when fetched again.
        public static let integrityFailed = Code(.integrityFailed)
        /// The caller cancelled.
        public static let cancelled = Code(.cancelled)
        /// A reader was interrupted; it can go on after ``CacheReader/resume()``.
        public static let interrupted = Code(.interrupted)
        /// The cache has been shut down.
        public static let shutDown = Code(.shutDown)
        /// There is no slot for a guest's download, which asks the origin then; no application sees it.
        package static let busy = Code(.busy)
    }

    /// The kind of failure.
    public let code: Code
    /// One sentence without full stop: what failed, for which URL or file, what to do.
    public let message: String
    /// The origin's status, for ``Code/httpStatus``.
    public let status: Int?
    /// The error below this one, for logs.
    public let cause: (any Error)?
    /// Whether the origin would be asked in vain if it were asked again at once.
    package internal(set) var isFinal = false
    /// The complete length of what was asked for, for ``Code/rangeNotSatisfiable``, if it is known.
    package internal(set) var completeLength: Int64?
    /// What the cache did before it failed, for a relayed request.
    package internal(set) var cacheStatus: CacheStatus?

    /// Creates an error.
    public init(
        _ code: Code,
        _ message: String,
        status: Int? = nil,
        cause: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.status = status
        self.cause = cause
    }

    /// The message, and the cause in parentheses where there is one.
    public var description: String {
        cause.map { "\(message) (\($0))" } ?? message
    }
}

extension CacheError {
    /// The origin's final status is an error.
    static func status(_ status: Int, for target: TargetURI) -> CacheError {
        CacheError(
            .httpStatus,
            "\(target.redacted) answered with status \(status)",
            status: status
        )
    }

    /// The origin has replaced what is being read.
    static func changed(_ target: TargetURI) -> CacheError {
        CacheError(
            .representationChanged,
            "\(target.redacted) changed at the origin; start again from 0"
        )
    }

    static let leftTransfer = CacheError(.cancelled, "the request was cancelled")
}
