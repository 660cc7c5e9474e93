public import HTTPCaching
public import HTTPTypes

/// The response to a ``CacheRequest``: the head, where it came from, and the body to be read.
public struct CacheResponse: Sendable {
    /// The final status; 200 where a range of a stored representation answers.
    ///
    /// A status of 400 or more is a response, not an error, here;
    /// ``MediaCache/data(for:)-(CacheRequest)`` throws it.
    public let status: HTTPResponse.Status
    /// The fields of the representation, connection fields left out.
    public let fields: HTTPFields
    /// The URL that answered after redirects.
    public let finalTarget: TargetURI
    /// What the cache did, in the words of RFC 9211.
    public let cacheStatus: CacheStatus
    /// The length of the whole representation; nil while the origin has not told.
    public let completeLength: Int64?
    /// Where the first byte of ``body`` stands in the representation.
    public var offset: Int64 { range.lowerBound }
    /// How many bytes ``body`` delivers; nil while that is not known.
    public var length: Int64? { range.upperBound.map { $0 - range.lowerBound } }
    package let range: (lowerBound: Int64, upperBound: Int64?)
    /// The body, to be read once.
    public let body: ResponseBody

    /// Why the body is not stored, or not pinned; nil if it is.
    ///
    /// Final once the body has been read to its end: a disk may fail in the middle.
    public var storageError: CacheError? { ownError ?? body.source.storageError }
    /// Whether the cache keeps the bytes, as far as the body has been read.
    public var isStored: Bool { wasStored && body.source.storageError == nil }
    /// The number that no other body of this key ever has, also after a restart; nil where the
    /// bytes are not on disk.
    package var generation: UInt64? { body.source.generation }
    /// Whether the memory tier may keep the body, also where the disk did not take it.
    package let mayKeepInMemory: Bool

    private let ownError: CacheError?
    private let wasStored: Bool

    /// Where the fields came from.
    package let headSource: ResponseSource
    let head: StoredResponse

    init(
        _ content: ResponseContent,
        to request: CacheRequest,
        source: ResponseSource,
        cacheStatus: CacheStatus,
        now: WallTime,
        notStored: NotStored? = nil,
        isStored: Bool = true
    ) {
        head = content.head
        status = HTTPResponse.Status(code: head.status)
        // `Age` says that a response did not come from the origin right now (RFC 9111 §5.1).
        fields = source == .origin ? head.fields : head.fieldsForReuse(now: now)
        finalTarget = head.finalTarget ?? request.target
        self.cacheStatus = cacheStatus
        completeLength = content.completeLength
        range = (content.wanted.start, content.wanted.end)
        body = ResponseBody(content.body)
        headSource = source
        wasStored = notStored == nil && isStored
        mayKeepInMemory = isStored && notStored?.isOfDisk ?? true
        ownError = content.storageError ?? notStored?.error(for: request)
    }

    /// Throws a status of 400 or more.
    func requireSuccess(of request: CacheRequest) throws(CacheError) {
        guard status.code >= 400 else { return }
        throw CacheError.status(status.code, for: request.target)
    }

    /// Where the response came from, as far as the body has been read.
    ///
    /// Final once the body has been read to its end: a response that began on disk becomes
    /// ``ResponseSource/origin`` with the first byte that had to be fetched.
    public var source: ResponseSource {
        bytesFromOrigin > 0 ? .origin : headSource
    }

    /// Delivered body bytes that were stored when the reader reached them.
    public var bytesFromCache: Int64 { body.source.counts.fromCache }

    /// Delivered body bytes that had to be fetched.
    public var bytesFromOrigin: Int64 { body.source.counts.fromOrigin }

    /// Where the bytes came from that were delivered last; nil before the first.
    public var lastBytesSource: ByteSource? {
        body.source.counts.isLastFromOrigin.map { isFetched in
            if isFetched { return .network }
            return headSource == .memory ? .memory : .disk
        }
    }
}

/// What answers a request: a head, and bytes of its representation.
struct ResponseContent {
    let head: StoredResponse
    let completeLength: Int64?
    let wanted: WantedRange
    let body: any BodySource
    /// How many of its bytes count as delivered by now.
    var counted = 0
    /// Why it cannot be pinned.
    var storageError: CacheError?
}
