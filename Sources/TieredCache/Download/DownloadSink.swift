package import HTTPCaching
package import HTTPTypes

/// Where a download's bytes go: an entry on disk, or straight to a reader.
///
/// Called by one task at a time, in order. The task may block in these calls, as it prefers an I/O
/// executor; as long as ``write(_:at:)`` has not returned, no further byte is read from the socket.
package protocol DownloadSink: Sendable {
    /// Takes in an accepted head, before its first byte.
    ///
    /// - Throws: What makes the download pointless; it ends with that error.
    func didReceiveHead(_ head: DownloadHead) async throws(CacheError)

    /// Stores bytes at their offset in the present generation.
    ///
    /// Offsets follow each other without a gap after each head. After ``DownloadHead/Kind``
    /// `.continuing` some of them may be stored already; they are the same bytes.
    func write(_ chunk: BodyChunk, at offset: Int64) async throws(CacheError)

    /// Nothing more is at hand: the download waits for the origin, after this returns.
    func willWait()

    /// Whether nobody wants the bytes from `offset` on, asked after each write.
    func shouldStop(at offset: Int64) -> Bool

    /// Whether a new generation may take the place of the one that is being delivered.
    ///
    /// False where bytes of the old one are out and cannot be taken back; the download then ends
    /// with ``CacheError/Code/representationChanged``.
    func canReplaceGeneration() -> Bool

    /// The run of stored bytes of the present generation that ends nearest before `offset`, or
    /// contains the byte before it; else one behind it. nil where there is none to compare with.
    func storedRun(near offset: Int64) -> Range<Int64>?

    /// Whether the bytes stored at `offset` are these.
    func isStored(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Bool

    /// Reports progress, at most ten times a second and once at the end.
    func didProgress(_ progress: DownloadProgress)

    /// Reports a failed attempt that will be followed by another.
    func willRetry(_ retry: DownloadRetry)
}

extension DownloadSink {
    package func willWait() {}
    package func shouldStop(at offset: Int64) -> Bool { false }
    package func canReplaceGeneration() -> Bool { true }
    package func storedRun(near offset: Int64) -> Range<Int64>? { nil }
    package func isStored(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Bool { false }
    package func didProgress(_ progress: DownloadProgress) {}
    package func willRetry(_ retry: DownloadRetry) {}
}

/// A response that was checked and accepted.
package struct DownloadHead: Sendable {
    /// What its body is.
    package enum Kind: Hashable, Sendable {
        /// The first bytes of a representation of its own, from `start.offset`.
        case newGeneration(GenerationStart)
        /// More of the present generation, or with status 200 all of it once more, because the
        /// origin does not know ranges. The length is what is known now.
        case continuing(from: Int64, completeLength: Int64?)
        /// No body: what is stored is current, and its fields are to be freshened.
        case notModified
    }

    /// Status and fields as received from the last hop.
    package let response: HTTPResponse
    /// What its body is.
    package let kind: Kind
    /// The URL behind all redirects, without userinfo.
    package let finalTarget: TargetURI
    /// When the request of the last hop was sent.
    package let requestTime: WallTime
    /// When its response arrived.
    package let responseTime: WallTime
}

/// How a download ended without an error.
package struct DownloadOutcome: Hashable, Sendable {
    /// The ways to end.
    package enum End: Hashable, Sendable {
        /// All bytes wanted arrived. The complete length is known at the end of a full body.
        case completed(completeLength: Int64?)
        /// The sink wanted no more from this offset on.
        case stopped(at: Int64)
        /// What is stored is current.
        case notModified
        /// A final status without a usable representation; its body was not read.
        case unsuccessful(HTTPResponse)
    }

    /// How it ended.
    package var end: End
    /// Body bytes that arrived.
    package var bytesReceived: Int64 = 0
    /// Of these, bytes at offsets that had arrived before in the same download.
    package var bytesRefetched: Int64 = 0
    /// Requests sent, redirects included.
    package var requests = 0
    /// Whether the origin was caught at answering ranges wrongly.
    package var areRangesUntrusted = false
    /// Pieces of which length an origin that throttles long answers sends fast; 0 where pieces
    /// were no faster, nil where it was not caught at that.
    package var fastLength: Int64?
    /// Where redirects that hold for good led; nil where there were none.
    package var permanentTarget: TargetURI?
    /// The URL behind all redirects.
    package var finalTarget: TargetURI
}
