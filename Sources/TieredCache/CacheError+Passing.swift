import HTTPCaching

// Which failures pass: the one place where that is decided. Which statuses do is decided in
// `StatusCode`.
extension CacheError {
    /// Whether the origin gave no response: not reached, silent for too long, or against the
    /// protocol.
    package var isWithoutResponse: Bool { code == .originFailed || code == .timedOut }

    /// Whether the same request may be answered otherwise within moments: what a reader goes on
    /// after.
    package var isTransient: Bool {
        code == .httpStatus
            ? status.map(StatusCode.isTransient) ?? false : isWithoutResponse && !isFinal
    }

    /// Whether it may be answered otherwise later, also in hours, without any change on this side.
    ///
    /// Beside what the origin does, that is what this machine is short of, and a representation
    /// that changed: a later download begins with the new one.
    var mayPass: Bool {
        switch code {
        case .localStorage, .notOwner, .representationChanged: true
        case .httpStatus: status.map(StatusCode.mayPass) ?? false
        default: isWithoutResponse
        }
    }
}
