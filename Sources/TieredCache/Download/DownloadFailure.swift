package import HTTPCaching

/// Why a download failed: the facts from which the error is made.
package enum DownloadFailure: Hashable, Sendable {
    /// This many attempts in a row brought no byte. The reason fits after `the origin `.
    case attemptsExhausted(Int, String, TransportError? = nil)
    /// No byte arrived for this time.
    case timedOut(after: Duration)
    /// An exchange failed in a way that a retry cannot mend.
    case transport(TransportError)
    /// The request cannot be sent.
    case invalidRequest(TransportError)
    /// A redirect that is not followed. The reason fits after `the origin redirects `.
    case redirectRefused(String)
    /// The origin contradicts itself repeatedly.
    case contradiction(RestartReason)
    /// Bytes of the old representation were delivered and cannot be revoked.
    case representationChanged
    /// The range starts beyond the end.
    case rangeNotSatisfiable(completeLength: Int64)
    /// The response cannot be used. The reason fits after `the origin `.
    case unusable(String)
    /// The caller cancelled.
    case cancelled
    /// The transport was shut down.
    case shutDown

    /// The error for people: the failure, the URL, the remedy.
    ///
    /// - Parameter target: The requested URL. Its query is left out, as it may hold a secret.
    /// - Returns: The error; its message is one line.
    package func error(for target: TargetURI) -> CacheError {
        var error = description(for: target)
        error.isFinal = isFinal
        return error
    }

    /// Whether the next attempt would end in the same way.
    private var isFinal: Bool {
        switch self {
        case .transport(let error): error.isFinal
        case .redirectRefused, .unusable, .invalidRequest: true
        case .contradiction(let reason): reason != .representationChanged
        default: false
        }
    }

    private func description(for target: TargetURI) -> CacheError {
        let url = "\(target.origin)\(target.path)" + (target.query == nil ? "" : "?…")
        func failed(
            _ code: CacheError.Code,
            because words: String,
            cause: TransportError? = nil
        ) -> CacheError {
            CacheError(code, "cannot download \(url): \(words)", cause: cause)
        }
        switch self {
        case .attemptsExhausted(let attempts, let reason, let cause):
            let times = attempts == 1 ? "1 attempt" : "\(attempts) attempts in a row"
            return failed(
                .originFailed,
                because: "the origin \(reason) in \(times); "
                    + "check the address and the network, or try later",
                cause: cause
            )
        case .timedOut(let duration):
            return failed(
                .timedOut,
                because: "no byte arrived for \(duration.inSeconds); "
                    + "try later or allow a longer timeout"
            )
        case .transport(let error):
            return failed(
                .originFailed,
                because: "the origin \(error.phrase); \(error.remedy)",
                cause: error
            )
        case .invalidRequest(let error):
            return failed(
                .invalidArgument,
                because: "the request cannot be sent; check the URL and the header fields",
                cause: error
            )
        case .redirectRefused(let reason):
            return failed(
                .originFailed,
                because: "the origin redirects \(reason); request the final URL instead"
            )
        case .contradiction(let reason):
            return failed(
                .originFailed,
                because: "the origin \(reason.phrase) repeatedly; try later"
            )
        case .representationChanged:
            return failed(
                .representationChanged,
                because: "it changed at the origin during the delivery; start again"
            )
        case .rangeNotSatisfiable(let length):
            var error = failed(
                .rangeNotSatisfiable,
                because: "the range starts beyond the end; the body has \(length) bytes"
            )
            error.completeLength = length
            return error
        case .unusable(let reason):
            return failed(
                .originFailed,
                because: "the origin \(reason); the origin must be repaired"
            )
        case .cancelled:
            return failed(.cancelled, because: "it was cancelled; received bytes stay stored")
        case .shutDown:
            return failed(.shutDown, because: "the cache was shut down; open it again")
        }
    }
}

extension TransportError {
    /// The failure, in words that fit after `the origin `.
    var phrase: String {
        switch kind {
        case .nameResolution: "has a name that did not resolve"
        case .connect: "could not be reached"
        case .tls: "could not agree on a secure connection"
        case .closedEarly: "closed the connection too early"
        case .malformedResponse: "sent something that is not HTTP"
        case .cancelled: "got a request that was cancelled"
        case .shutDown: "got a request that was cancelled by a shutdown"
        case .invalidRequest: "cannot get such a request"
        }
    }

    fileprivate var remedy: String {
        switch kind {
        case .tls: "check its certificate and this machine's clock"
        case .malformedResponse: "the origin must be repaired"
        default: "try again"
        }
    }

    /// Whether the next attempt would fail in the same way.
    var isFinal: Bool { kind == .tls || kind == .malformedResponse }
}

extension RestartReason {
    fileprivate var phrase: String {
        switch self {
        case .representationChanged: "changed the representation"
        case .rangesUntrusted(let words): words
        case .violation(let words): "answered \(words)"
        }
    }
}

extension Duration {
    /// Seconds with at most one decimal, for people.
    fileprivate var inSeconds: String {
        let tenths = saturatedNanoseconds / 100_000_000
        return tenths % 10 == 0 ? "\(tenths / 10) s" : "\(tenths / 10).\(tenths % 10) s"
    }
}
