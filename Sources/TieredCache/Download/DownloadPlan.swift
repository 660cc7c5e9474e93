package import HTTPCaching
package import HTTPTypes

/// What a download is to fetch, and what is known before its first request.
package struct DownloadPlan: Sendable {
    /// The requested URL; every attempt starts here, and so at its redirects.
    package var target: TargetURI
    /// The request method; only GET is ever resumed.
    package var method: HTTPRequest.Method
    /// The caller's fields; what frames a message or selects bytes is ours and replaced.
    package var fields: HTTPFields
    /// The request body, or nil.
    package var body: [UInt8]?
    /// A request body that is streamed, in place of `body`.
    package var upload: UploadBody?
    /// How the answer is relayed to another client; nil where the application itself asks.
    package var relay: RelayPlan?
    /// The bytes wanted; `Int64.max` as the upper bound means to the end.
    package var range: Range<Int64>
    /// What is stored of the current generation, or nil where nothing is.
    package var generation: Generation?
    /// `If-None-Match` and `If-Modified-Since` of a revalidation; empty for a plain download.
    package var conditionalFields: HTTPFields
    /// How patient and how trusting the download is.
    package var policy: DownloadPolicy
    /// Whether caches on the way must not answer from what they hold.
    package var bypassesCaches = false
    /// Where permanent redirects are known to lead, so that the way need not be gone again.
    package var permanentTarget: TargetURI?
    /// What the request says in `Via`; it selects nothing.
    package var via: String?
    /// The fields that are for the requested origin alone.
    package var secretFields = MediaCache.Configuration.commonSecretFields
    /// Whether ranges carry `If-Match`: one of several requests that fetch one body at a time.
    package var isSegment = false
    /// Gives a fresh URL where the present one is refused with this status; nil where nobody does.
    package var resolve: (@Sendable (Int) async -> TargetURI?)?

    package init(
        target: TargetURI,
        method: HTTPRequest.Method = .get,
        fields: HTTPFields = [:],
        body: [UInt8]? = nil,
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

/// How an exchange is made on behalf of another client, whose request and whose answer it is.
///
/// The request goes out with the client's own end-to-end fields; redirects, errors and coded bodies
/// are answers like any other and come through as they are.
package struct RelayPlan: Sendable {
    /// Whether something is stored that is served instead of an error of the origin (RFC 5861 §4).
    package var hasFallback = false
    /// Told of interim responses, which go to the client as well.
    package var onInterim: (@Sendable (HTTPResponse) -> Void)?

    package init(hasFallback: Bool = false) {
        self.hasFallback = hasFallback
    }
}

extension DownloadPlan {
    /// Whether an origin that has sent all instead of the range asked for may go on.
    ///
    /// It may where it sends another representation than the range was of: a client that asked will
    /// want that.
    package func wantsWhole(after start: GenerationStart, _ response: HTTPResponse) -> Bool {
        (policy.takesWholeAnswers || generation != nil) && range.upperBound < .max
            && start.offset == 0
            && response.status == .ok
    }

    /// Whether a whole body shows, or lets fear, that a request for the bytes behind some that are
    /// stored would bring all of it again.
    package func hasIgnoredRanges(_ start: GenerationStart, _ response: HTTPResponse) -> Bool {
        guard start.offset == 0, response.status == .ok else { return false }
        return range != 0..<Int64.max
            || response.headerFields[.acceptRanges]?.lowercased() != "bytes"
    }
}

/// What identifies the bytes stored, and with it every response that may be joined to them.
package struct Generation: Hashable, Sendable {
    /// The strong validator, or nil: then nothing can be joined.
    package var validator: Validator?
    /// The complete length where it is known.
    package var completeLength: Int64?
    /// The URL that answered, behind redirects: the validator counts there; nil where that is not
    /// known.
    package var target: TargetURI?

    package init(
        validator: Validator?,
        completeLength: Int64? = nil,
        target: TargetURI? = nil
    ) {
        self.validator = validator
        self.completeLength = completeLength
        self.target = target
    }
}

/// How patient and how trusting a download is.
package struct DownloadPolicy: Hashable, Sendable {
    /// Attempts in a row that may bring no byte; the first one counts, and is made always.
    package var maximumAttempts = 5
    /// The longest wait for a byte while one is being waited for.
    package var timeout: Duration = .seconds(30)
    /// Whether the timeout ends the download; if not, it is a failed attempt like others.
    package var isTimeoutFinal = true
    /// How long to wait for a connection.
    package var connectTimeout: Duration = .seconds(10)
    /// The waits between attempts.
    package var backoff = Backoff()
    /// The longest wait that `Retry-After` can ask for.
    package var maximumRetryAfter: Duration = .seconds(60)
    /// Redirects followed in a row.
    package var maximumRedirects = 10
    /// Whether redirects from elsewhere to this machine or the local link are refused.
    package var staysOutside = true
    /// Restarts from the first byte, because the origin contradicted itself or changed.
    package var maximumRestarts = 4
    /// Whether the origin is known to answer ranges wrongly; it is then asked for all, in order.
    package var areRangesUntrusted = false
    /// Whether all of a body is taken where the origin sends it instead of the range asked for.
    ///
    /// For readers, which want what follows as well.
    package var takesWholeAnswers = false
    /// Whether a 206 without an entity tag is believed where `If-Range` carried one.
    ///
    /// RFC 9110 §15.3.7 obliges the origin to repeat the tag; many do not.
    package var isLenient = true
    /// Whether coded bytes are kept as they are: whoever asked said which codings it takes.
    package var keepsCoding = false
    /// The most bytes that one request asks for; nil for all that is missing.
    ///
    /// For origins that throttle long answers, and for fairness among those that share a line.
    package var maximumRequestLength: Int64?
    /// Whether an origin that begins fast and goes on slowly is asked for the rest in pieces.
    package var detectsThrottling = false
    /// How many stored bytes are fetched again and compared where the validator does not count for
    /// the URL that answers, or there is none (row 28).
    package var overlap: Int64 = 64 << 10
    /// Whether the download may use a network whose bytes cost money.
    package var avoidsExpensiveNetworks = false

    package init() {}
}
