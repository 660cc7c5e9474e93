package import HTTPCaching
package import HTTPTypes

/// The meaning of a response to a request: the table of request kind and response.
///
/// docs/architecture.md numbers the rows; the tests are named after them. ``RedirectChain`` has
/// handled redirects (row 19) before. No byte of the body has been read yet.
package enum ResponseDisposition: Hashable, Sendable {
    /// The body is a new representation: no earlier bytes may be combined with it.
    case newGeneration(GenerationStart)
    /// The body is more of the stored generation: exactly the bytes `range`.
    case continuing(Range<Int64>, completeLength: Int64?)
    /// The body repeats stored bytes up to `end`, then is more of the stored generation, if the
    /// repeated ones are the same.
    case comparing(Range<Int64>, until: Int64, completeLength: Int64?)
    /// The body is the whole stored generation, from its first byte, if the first `comparing` bytes
    /// are the same.
    case repeating(completeLength: Int64?, comparing: Int64)
    /// The stored response is current.
    case notModified
    /// The requested range starts at the end: all bytes are stored.
    case alreadyComplete(length: Int64)
    /// The requested range starts beyond the end.
    case rangeNotSatisfiable(completeLength: Int64)
    /// Retry later, with the stored generation.
    case retry(after: Duration?)
    /// Request the whole again.
    case restart(RestartReason)
    /// A final status without a requested representation.
    case unsuccessful
    /// The bytes cannot be used; the reason fits after `the origin `.
    case unusable(String)
}

/// Why bytes cannot be combined with the stored ones.
package enum RestartReason: Hashable, Sendable {
    /// The origin has another representation now.
    case representationChanged
    /// A partial response that must not be combined; no further ranges are requested.
    case rangesUntrusted(String)
    /// A response that does not fit the request; caches on the path are bypassed.
    case violation(String)
}

/// The start of a generation with a response.
package struct GenerationStart: Hashable, Sendable {
    /// How the end of the body is determined (RFC 9112 §6.3).
    package enum Framing: Hashable, Sendable {
        /// By a length or a last chunk.
        case verified
        /// By the close of the connection alone: a lost connection looks like the end.
        case closeDelimited
    }

    /// The offset of the body's first byte in the representation.
    package var offset: Int64
    /// The offset after the body's last byte, if known.
    package var end: Int64?
    /// The complete length of the (decoded) representation in bytes, if known.
    package var completeLength: Int64?
    /// The strong validator; nil if nothing may ever be combined with this generation.
    package var validator: Validator?
    /// How the end of the body is determined.
    package var framing: Framing
    /// The coding to decode before storing.
    package var coding: ContentCoding
    /// Whether the bytes are the content of this response itself, whatever its status.
    package var isVerbatim = false
    /// Whether the origin has contradicted the stored representation in this download: the two are
    /// not combined, even if their validators match (row 8).
    package var contradictsStored = false
    /// Whether ranges of this representation have contradicted each other: it is requested as a
    /// whole, in order, from now on.
    package var areRangesUntrusted = false

    /// Whether the body is known to be all of the representation.
    var isWhole: Bool { offset == 0 && end != nil && end == completeLength }

    package init(
        offset: Int64 = 0,
        end: Int64? = nil,
        completeLength: Int64?,
        validator: Validator?,
        framing: Framing = .verified,
        coding: ContentCoding = .identity
    ) {
        self.offset = offset
        self.end = end
        self.completeLength = completeLength
        self.validator = validator
        self.framing = framing
        self.coding = coding
    }
}

/// The facts beside request and response that the decision depends on.
package struct ResponseContext: Hashable, Sendable {
    /// The request's method.
    package var method: HTTPRequest.Method
    /// The stored generation, whether or not the request mentions it.
    package var generation: Generation?
    /// When the response arrived.
    package var responseTime: WallTime
    /// The limits of the download, and its trust in the origin.
    package var policy: DownloadPolicy
    /// How the final URL is related to that of the stored generation.
    package var relation = ResourceRelation.same
    /// The number of bytes stored from the start, if they would have to be compared; nil if none
    /// can be.
    package var comparablePrefix: Int64?

    package init(
        method: HTTPRequest.Method = .get,
        generation: Generation? = nil,
        responseTime: WallTime,
        policy: DownloadPolicy = DownloadPolicy()
    ) {
        self.method = method
        self.generation = generation
        self.responseTime = responseTime
        self.policy = policy
    }
}
