public import FoundationEssentials
public import HTTPCaching
public import HTTPTypes

/// A request of an application: a URL, and how the cache may answer.
///
/// Cheap to copy. Make it once and keep it where the same thing is asked for often: the key's hash
/// is computed here, not at each lookup.
public struct CacheRequest: Sendable {
    /// How an entry is kept and fetched, beside its policy and priority.
    public struct Options: OptionSet, Hashable, Sendable {
        /// The options as bits; not for storage, another version may number them otherwise.
        public let rawValue: UInt8

        /// Takes options as bits.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The entry is kept until it is removed by hand: eviction spares it.
        public static let pinned = Options(rawValue: 1)
        /// A download waits for another network while the present one charges for bytes, as
        /// ``MediaCache/Configuration/networkMonitor`` says; where that is unknown it does not wait.
        public static let avoidsExpensiveNetworks = Options(rawValue: 2)

        /// Inserts or removes options.
        package mutating func set(_ options: Options, to isMember: Bool) {
            if isMember { insert(options) } else { remove(options) }
        }
    }

    /// The target, without userinfo and fragment.
    public let target: TargetURI
    /// What selects the entry: the target, or the key that the request was made with.
    public let key: CacheKey
    /// The name that the application gave the entry, if it did; only then is anything but a GET
    /// stored.
    public let explicitKey: String?
    /// The method, by default GET.
    public let method: HTTPRequest.Method
    /// Fields sent with the request, among them those that the URL's userinfo asks for.
    ///
    /// Requests whose fields differ never share a transfer (invariant 8). `Range`, conditional and
    /// connection fields, `Host` and `Accept-Encoding` are the engine's own and are not taken from
    /// here.
    public var fields: HTTPFields {
        get { ownFields }
        set {
            ownFields = newValue
            updateFacts()
        }
    }
    /// The request's body; nil for none.
    public var body: Data?
    /// How the cache may answer, by default as the protocol says.
    public var policy: CachePolicy {
        get { ownPolicy }
        set {
            ownPolicy = newValue
            updateFacts()
        }
    }
    /// The bytes wanted, or nil for the whole representation.
    ///
    /// Offsets are kept as far as a body may be long; see `ByteOffset`.
    public var range: ByteRangeSpec? {
        get { ownRange }
        set { ownRange = newValue?.clamped }
    }
    /// How urgent it is, by default normal.
    public var priority: RequestPriority = .normal
    /// How the entry is kept and fetched; none by default.
    public var options: Options = []
    /// Whether the entry is evicted first until it is used.
    package var isPrefetch = false
    /// Names of fields that only the first origin gets, as it gets secret ones: a redirect to
    /// another one takes them away.
    package var firstOriginFields: Set<HTTPField.Name> = []
    /// Names of fields that a rule for the host has given; they are not written down.
    var ruleFields: Set<HTTPField.Name> = []
    /// Hosts of which nothing is stored, where a redirect leads to one.
    package var excludedHosts: [HostPattern] = []
    /// How the response goes to another client; nil where the application itself asks.
    var relay: Relay?
    /// What a reader will go on to after the range, which is only what it begins with.
    var scope: ReaderScope?
    /// How long a read of its response tries; nil where a read has no deadline.
    var readDeadline: Duration?
    /// How long to wait for a byte before an attempt counts as failed; nil for the configuration's.
    ///
    /// Of several requests that share a transfer, the one that begins it decides.
    public var timeout: Duration?
    /// How many attempts in a row may bring nothing, at least one; nil for the configuration's.
    ///
    /// Of several requests that share a transfer, the one that begins it decides.
    public var retries: Int?
    /// How long it waits for a slot of the queue, then it fails with `.busy`; nil for any time.
    package var slotLimit: Duration?
    /// Called with the progress of the transfer, at most ten times a second.
    ///
    /// It must not block. Of several requests that share a transfer, only the first is called.
    public var onProgress: (@Sendable (DownloadProgress) -> Void)?
    /// Called with redirects, retries and other notices of the transfer.
    ///
    /// It must not block. Of several requests that share a transfer, only the first is called.
    public var onNotice: (@Sendable (DownloadNotice) -> Void)?
    /// The consumers of the reports of the operation that makes this request; nil if there is none.
    var reports: RequestReports?
    /// The expected digests of the whole body, checked when it was read to its end.
    ///
    /// A body with another digest is fetched once more; then the request fails with
    /// `.integrityFailed`. It is discarded if no request without this expectation has used it;
    /// other requests never fail by it. A stored body is checked as well where all of it is asked
    /// for, which costs one pass over it, on disk once while it is in use. `Repr-Digest` and
    /// `Content-MD5` of the response are checked for all requests.
    public var expectedDigests: [ContentDigest] = []
    /// Slows what it fetches, beside the limits of the configuration; nil for nothing.
    ///
    /// Of several requests that share a transfer, only that of the first counts.
    package var limiter: BandwidthLimiter?
    /// Whether its ranges are some of several that fetch one body at the same time.
    var isSegment = false
    /// Why the URL cannot be used; nil if it can.
    ///
    /// A reference, because requests are copied often.
    private var invalidURL: InvalidURL?
    // Not observed properties: an initializer in an extension would set them without their
    // observers.
    private var ownFields: HTTPFields = [:]
    private var ownPolicy = CachePolicy.protocolDefault
    private var ownRange: ByteRangeSpec?
    /// What the fields and the policy say about caching, parsed when they are set.
    private(set) var facts: RequestFacts
    /// Whether method, fields and policy are what they are by default.
    private var isPlain: Bool
    /// Whether a response may be kept at all as far as the request says; false where the URL cannot
    /// be used, whatever the key.
    private(set) var isCacheable: Bool

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - url: an absolute `http` or `https` URL. A fragment is dropped; userinfo becomes Basic
    ///     authorization and is neither stored nor printed; characters outside ASCII are encoded
    ///     as UTF-8; existing escapes stay as they are.
    ///   - key: names the entry instead of the URL, together with the method: for rotating
    ///     signatures, and for POST, where the caller puts the body into the key.
    ///   - method: by default GET.
    /// - Throws: `.invalidURL`.
    public init(
        _ url: String,
        key: String? = nil,
        method: HTTPRequest.Method = .get
    ) throws(CacheError) {
        self.init(try Self.target(url), key: key, method: method)
    }

    /// Creates a request from a `URL`, taken as its `absoluteString`.
    ///
    /// Any URL will do here; calls that use a request throw `.invalidURL` where it is not an
    /// absolute `http` or `https` URL.
    ///
    /// - Parameters:
    ///   - url: the URL.
    ///   - key: names the entry instead of the URL, together with the method.
    ///   - method: by default GET.
    public init(
        _ url: URL,
        key: String? = nil,
        method: HTTPRequest.Method = .get
    ) {
        do throws(CacheError) {
            self.init(try Self.target(url.absoluteString), key: key, method: method)
        } catch {
            self.init(.unusable, key: key, method: method)
            invalidURL = InvalidURL(error)
            isCacheable = false
        }
    }

    private static func target(_ url: String) throws(CacheError) -> TargetURI {
        do {
            return try TargetURI(url)
        } catch {
            throw CacheError(.invalidURL, "cannot use '\(url.withoutSecrets)' as a URL: \(error)")
        }
    }

    /// Throws `.invalidURL` where the URL cannot be used.
    func checkURL() throws(CacheError) {
        if let invalidURL { throw invalidURL.error }
    }

    private final class InvalidURL: Sendable {
        let error: CacheError

        init(_ error: CacheError) {
            self.error = error
        }
    }

    /// Whether eviction spares the entry.
    package var isPinned: Bool { options.contains(.pinned) }

    /// What a request has that is made on behalf of another client.
    struct Relay: Sendable {
        /// The client's body, while it is being received.
        var upload: UploadBody?
        /// Told of interim responses of the origin.
        var onInterim: (@Sendable (HTTPResponse) -> Void)?
        /// Whether the client is the application itself, by a client library.
        var isForApplication = false
    }

    package init(_ target: TargetURI, key: String?, method: HTTPRequest.Method) {
        self.target = target.withoutUserinfo
        self.key = Self.key(target, explicit: key, method: method)
        self.explicitKey = key
        self.method = method
        // What a HEAD brings is no body, whatever it is called.
        isCacheable = method == .get || (key != nil && method != .head)
        facts = RequestFacts(method: method)
        isPlain = method == .get
        if let authorization = target.basicAuthorization {
            fields[.authorization] = authorization
        }
    }

    private mutating func updateFacts() {
        facts = RequestFacts(method: method, fields: fields, policy: policy)
        isPlain = method == .get && fields.isEmpty && policy == .protocolDefault
    }

    /// Whether this is a GET of the whole that leaves everything to the cache, as nearly all are.
    @inline(__always)
    var isPlainGet: Bool { isPlain && range == nil && !isPinned }

    /// Takes the fields of another request, with what holds for them.
    mutating func takeFields(of other: CacheRequest) {
        fields = other.fields
        firstOriginFields = other.firstOriginFields
        ruleFields = other.ruleFields
        excludedHosts = other.excludedHosts
    }

    /// Whether nothing of a URL's host is stored, where a redirect has led there.
    func excludes(_ target: TargetURI) -> Bool {
        excludedHosts.contains { $0.matches(target.origin) }
    }

    /// Whether the application chose the key, and so answers for what it stands for.
    var hasExplicitKey: Bool { explicitKey != nil && isCacheable }

    /// The key of what a URL, an explicit name and a method select together.
    ///
    /// - Parameters:
    ///   - target: the URL.
    ///   - explicit: the application's own name for the entry; nil for the URL.
    ///   - method: part of the key unless it is a GET of a URL.
    /// - Returns: the key.
    public static func key(
        _ target: TargetURI,
        explicit: String?,
        method: HTTPRequest.Method = .get
    ) -> CacheKey {
        guard explicit != nil || method != .get else { return CacheKey(target) }
        return CacheKey(explicit: explicit ?? target.string, method: method.rawValue)
    }
}

extension String {
    /// The text without what may be a secret in something that is no URL: everything before the
    /// last `@`, scheme apart, and the query.
    fileprivate var withoutSecrets: String {
        let text = prefix { $0 != "?" && $0 != "#" }
        let query = text.endIndex < endIndex ? "?…" : ""
        guard let at = text.lastIndex(of: "@") else { return text + query }
        let scheme = text.firstRange(of: "//").map { text[..<$0.upperBound] } ?? ""
        let start = scheme.endIndex <= at ? scheme : ""
        return start + text[text.index(after: at)...] + query
    }
}
