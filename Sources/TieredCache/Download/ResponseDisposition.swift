package import HTTPCaching
package import HTTPTypes

/// What a response means to the request it answers: the table of request kind and response.
///
/// The rows are numbered as in the table that the tests are named after. Redirects (row 19) are
/// ``RedirectChain``'s and have been dealt with before. Nothing of the body has been read yet.
package enum ResponseDisposition: Hashable, Sendable {
    /// The body is a representation of its own: nothing before it may be joined to it.
    case newGeneration(GenerationStart)
    /// The body is more of the generation stored: bytes `range`, and not one more.
    case continuing(Range<Int64>, completeLength: Int64?)
    /// The body repeats bytes that are held up to `end`, then is more of the generation stored, if
    /// the repeated ones are the same.
    case comparing(Range<Int64>, until: Int64, completeLength: Int64?)
    /// The body is all of the generation stored, from its first byte, if the first `comparing`
    /// bytes are the same.
    case repeating(completeLength: Int64?, comparing: Int64)
    /// What is stored is current.
    case notModified
    /// The range asked for starts at the end: all there is, is stored.
    case alreadyComplete(length: Int64)
    /// The range asked for starts beyond the end.
    case rangeNotSatisfiable(completeLength: Int64)
    /// Try again later, with what is stored.
    case retry(after: Duration?)
    /// Ask again for all of it.
    case restart(RestartReason)
    /// A final status without a representation that was asked for.
    case unsuccessful
    /// The bytes cannot be used; the reason fits after `the origin `.
    case unusable(String)
}

/// Why the bytes that would have been joined cannot be.
package enum RestartReason: Hashable, Sendable {
    /// The origin has another representation now.
    case representationChanged
    /// A partial response that must not be combined; ranges of this origin are not asked again.
    case rangesUntrusted(String)
    /// An answer that the request did not ask for; caches on the way are bypassed.
    case violation(String)
}

/// A generation that begins with a response.
package struct GenerationStart: Hashable, Sendable {
    /// How the end of the body is known (RFC 9112 §6.3).
    package enum Framing: Hashable, Sendable {
        /// By a length or a last chunk.
        case verified
        /// By the close of the connection alone: a cut looks like an end.
        case closeDelimited
    }

    /// The offset of the body's first byte in the representation.
    package var offset: Int64
    /// The offset after the body's last byte, where it is known.
    package var end: Int64?
    /// The complete length of the representation (decoded), where it is known.
    package var completeLength: Int64?
    /// The strong validator; nil where nothing may ever be joined to this generation.
    package var validator: Validator?
    /// How the end of the body is known.
    package var framing: Framing
    /// What to decode before storing.
    package var coding: ContentCoding
    /// Whether the bytes are the content of this very response, whatever its status says.
    package var isVerbatim = false
    /// Whether the origin has said in this download that what is stored is no longer the
    /// representation: then the two are not joined, whatever the validators say now (row 8).
    package var contradictsStored = false
    /// Whether the origin has contradicted itself in ranges of this very representation: it is
    /// asked for all of it, in order, from now on.
    package var areRangesUntrusted = false

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

/// The facts beside request and response that the decision rests on.
package struct ResponseContext: Hashable, Sendable {
    /// The request's method.
    package var method: HTTPRequest.Method
    /// The generation stored, whether or not the request mentions it.
    package var generation: Generation?
    /// When the response arrived.
    package var responseTime: WallTime
    /// How patient and how trusting the download is.
    package var policy: DownloadPolicy
    /// How the URL that answers is related to the one that gave the generation stored.
    package var relation = ResourceRelation.same
    /// How many bytes from the first one on are stored, where they would have to be compared; nil
    /// where nothing is stored that can be.
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
