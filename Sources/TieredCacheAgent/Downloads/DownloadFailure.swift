package import TieredCache

/// Why a run failed, in aria2's numbers.
package struct DownloadFailure: Error, Hashable, Sendable {
    /// The exit status of aria2 for it.
    package let code: Int
    /// One sentence.
    package let message: String
    /// Whether a later attempt may succeed without any change.
    package let isTransient: Bool
    /// Whether another URL of the same file may succeed.
    package let isOfURI: Bool
    /// How often it was tried.
    var tries: Int64 = 1

    /// A failure of the file that was to be made.
    package init(file message: String, code: Int) {
        self.code = code
        self.message = message
        isTransient = false
        isOfURI = false
    }

    /// A failure of the engine.
    package init(_ problem: DownloadProblem) {
        message = problem.message
        isTransient = problem.isTransient
        isOfURI = ![.localStorage, .notOwner, .formatTooNew, .shutDown].contains(problem.code)
        code =
            switch problem.code {
            case .timedOut: 2
            case .httpStatus: Self.code(ofStatus: problem.status ?? 0)
            case .originFailed: 6
            case .localStorage, .notStorable: 9
            case .integrityFailed: 32
            case .representationChanged, .rangeNotSatisfiable: 8
            case .invalidURL, .invalidArgument: 28
            default: 1
            }
    }

    private static func code(ofStatus status: Int) -> Int {
        switch status {
        case 401, 403, 407: 24
        case 404, 410: 3
        case 500...: 29
        default: 22
        }
    }
}
