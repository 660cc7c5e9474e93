package import FoundationEssentials
package import HTTPCaching
package import HTTPTypes

/// The bytes that a download fetches, and the facts known before its first request.
package struct DownloadPlan: Sendable {
    /// The requested URL; every attempt starts here, at the head of its redirects.
    package var target: TargetURI
    /// The request method; only GET is ever resumed.
    package var method: HTTPRequest.Method
    /// The caller's fields; the engine replaces those that frame a message or select bytes.
    package var fields: HTTPFields
    /// The request body, or nil.
    package var body: Data?
    /// A request body that is streamed, in place of `body`.
    package var upload: UploadBody?
    /// How the response is relayed to a client; nil for a request of the application itself.
    package var relay: RelayPlan?
    /// The wanted bytes; `Int64.max` as the upper bound means to the end.
    package var range: Range<Int64>
    /// Whether the client has named a range.
    ///
    /// All is asked for as `bytes=0-` then, as the client alone would: some origins answer nothing
    /// else.
    var asksForRange = false
    /// Whether all is asked for as a range.
    var asksForAllAsRange: Bool { asksForRange && range == 0..<Int64.max }
    /// The current generation of the stored bytes, or nil if none are stored.
    package var generation: Generation?
    /// `If-None-Match` and `If-Modified-Since` of a revalidation; empty for a plain download.
    package var conditionalFields: HTTPFields
    /// The download's limits and its trust in the origin.
    package var policy: DownloadPolicy
    /// Whether caches on the path must not answer from their stores.
    package var bypassesCaches = false
    /// The known target of permanent redirects, requested without following them again.
    package var permanentTarget: TargetURI?
    /// The value of `Via`; it selects nothing.
    package var via: String?
    /// The fields that only the requested origin may receive.
    package var secretFields = MediaCache.Configuration.commonSecretFields
    /// Hosts of which nothing is stored, nor combined with what is.
    package var excludedHosts: [HostPattern] = []
    /// Whether ranges carry `If-Match`: one of several concurrent requests for one body.
    package var isSegment = false
    /// What another cache has to know to store the response; nil if it must not have the request.
    package var shared: SharedRequest?
    /// Observes the requests; nil for none.
    package var observation: (any TransferObservation)?
    /// Returns a new URL after the current one was refused with a status; nil without a resolver.
    package var resolve: (@Sendable (Int) async -> TargetURI?)?

    package init(
        target: TargetURI,
        method: HTTPRequest.Method = .get,
        fields: HTTPFields = [:],
        body: Data? = nil,
        range: Range<Int64> = 0..<Int64.max,
        generation: Generation? = nil,
        conditionalFields: HTTPFields = [:],
        policy: DownloadPolicy = DownloadPolicy()
    ) {
        self.target = target
        self.method = method
        self.fields = fields
        self.body = body
        self.range = range
        self.generation = generation
        self.conditionalFields = conditionalFields
        self.policy = policy
    }
}

/// An exchange made on behalf of a client, which sent the request and gets the response.
///
/// The request carries the client's own end-to-end fields; redirects, errors and coded bodies are
/// relayed unchanged like any response.
package struct RelayPlan: Sendable {
    /// Whether a stored response may be served instead of an error of the origin (RFC 5861 §4).
    package var hasFallback = false
    /// Called with interim responses, which the client gets as well.
    package var onInterim: (@Sendable (HTTPResponse) -> Void)?

    package init(hasFallback: Bool = false) {
        self.hasFallback = hasFallback
    }
}

extension DownloadPlan {
    /// Whether an origin that sends the whole instead of the requested range may continue.
    ///
    /// It may if it sends a representation other than that of the range: a client that requested
    /// the range will want that.
    package func wantsWhole(after start: GenerationStart, response: HTTPResponse) -> Bool {
        (policy.acceptsWholeBodies || generation != nil) && range.upperBound < .max
            && start.offset == 0
            && response.status == .ok
    }

    /// Whether a whole body indicates that a request for the bytes after stored ones would bring
    /// the whole again.
    package func hasIgnoredRanges(_ start: GenerationStart, response: HTTPResponse) -> Bool {
        guard start.offset == 0, response.status == .ok else { return false }
        return range != 0..<Int64.max
            || response.headerFields.value(of: .acceptRanges)?.lowercased() != "bytes"
    }
}

/// Identifies the stored bytes, and every response that may be combined with them.
package struct Generation: Hashable, Sendable {
    /// The strong validator; without one nothing can be combined.
    package var validator: Validator?
    /// The complete length in bytes, if known.
    package var completeLength: Int64?
    /// The final URL of the response, for which the validator holds; nil if unknown.
    package var target: TargetURI?
    /// The digests of the whole that the origin has promised.
    package var promised: [ContentDigest]

    package init(
        validator: Validator?,
        completeLength: Int64? = nil,
        target: TargetURI? = nil,
        promised: [ContentDigest] = []
    ) {
        self.validator = validator
        self.completeLength = completeLength
        self.target = target
        self.promised = promised
    }

    /// Whether a response promises another body, whatever its validator says.
    func isContradicted(by response: HTTPResponse) -> Bool {
        let isPart = response.status == .partialContent
        return promised.contradicts(
            ContentDigest.promised(in: response.headerFields, isPart: isPart)
        )
    }
}

/// The limits of a download, and its trust in the origin.
package struct DownloadPolicy: Hashable, Sendable {
    /// The maximum number of attempts in a row without a byte, including the first, at least 1.
    package var maximumAttempts = 5
    /// The maximum wait for a byte.
    package var timeout: Duration = .seconds(30)
    /// Whether the timeout ends the download; otherwise it is a failed attempt.
    package var isTimeoutFinal = true
    /// The maximum wait for a connection.
    package var connectTimeout: Duration = .seconds(10)
    /// The waits between attempts.
    package var backoff = Backoff()
    /// The maximum wait that `Retry-After` can request.
    package var maximumRetryAfter: Duration = .seconds(60)
    /// The maximum number of redirects in a row; Fetch follows as many.
    package var maximumRedirects = 20
    /// Whether redirects to this machine or the local link are refused from elsewhere.
    package var staysOutside = true
    /// The maximum number of restarts from the first byte after contradictions or changes.
    package var maximumRestarts = 4
    /// Whether the origin is known to mishandle ranges; it is then asked for the whole, in order.
    package var areRangesUntrusted = false
    /// Whether a whole body is accepted instead of the requested range.
    ///
    /// For readers, which want the following bytes as well.
    package var acceptsWholeBodies = false
    /// Whether a 206 without an entity tag is accepted if `If-Range` carried one.
    ///
    /// RFC 9110 §15.3.7 requires the origin to repeat the tag; many do not.
    package var isLenient = true
    /// Whether coded bytes are kept: the client has said which codings it accepts.
    package var keepsCoding = false
    /// The maximum number of bytes per request; nil for all missing ones.
    ///
    /// For origins that throttle long responses, and for fairness among clients of one line.
    package var maximumRequestLength: Int64?
    /// Whether the rest is requested in pieces if an origin starts fast and continues slowly.
    package var detectsThrottling = false
    /// The number of stored bytes that are fetched again and compared if the validator does not
    /// hold for the final URL, or there is none (row 28).
    package var overlap: Int64 = 64 << 10
    /// Whether the download waits while the network has costs per byte.
    package var avoidsExpensiveNetworks = false

    package init() {}
}
