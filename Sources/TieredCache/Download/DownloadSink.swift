package import HTTPCaching
package import HTTPTypes

/// Receives a download's bytes: writes them to an entry, or hands them to a reader.
///
/// Called by one task at a time, in order. The calls may block, as the task prefers an I/O
/// executor; until ``write(_:at:)`` has returned, no further byte is read from the socket.
package protocol DownloadSink: Sendable {
    /// Receives an accepted head, before its first byte.
    ///
    /// - Throws: An error that makes the download pointless, and ends it.
    func didReceiveHead(_ head: DownloadHead) async throws(CacheError)

    /// Receives bytes at their offset in the current generation.
    ///
    /// Offsets follow each other without a gap after each head. After ``DownloadHead/Kind``
    /// `.continuing` some of the bytes may be stored already; they are the same.
    func write(_ chunk: BodyChunk, at offset: Int64) async throws(CacheError)

    /// Receives an accepted head, and all bytes of its body, which have come with it.
    ///
    /// As ``didReceiveHead(_:)`` and ``write(_:at:)``, one after the other.
    func didReceive(
        _ head: DownloadHead,
        whole body: BodyChunk,
        at offset: Int64
    ) async throws(CacheError)

    /// The origin has contradicted what it said of the bytes that were written: none of the
    /// current generation is kept (row 25).
    func withdraw()

    /// No byte is available: the download waits for the origin after this returns.
    func willWait()

    /// Whether the bytes from `offset` are not wanted; called after each write.
    func shouldStop(at offset: Int64) -> Bool

    /// Whether a new generation may replace the one that is being delivered.
    ///
    /// False after bytes of the old one were delivered; the download then ends with
    /// ``CacheError/Code/representationChanged``.
    func canReplaceGeneration() -> Bool

    /// The run of stored bytes of the current generation that contains the byte before `offset`, or
    /// ends nearest before it, otherwise one after it; nil if there is none to compare with.
    func storedRun(near offset: Int64) -> Range<Int64>?

    /// Whether the bytes stored at `offset` equal the first `count` of `chunk`.
    func isStored(_ count: Int, of chunk: BodyChunk, at offset: Int64) async -> Bool

    /// Reports progress, at most ten times per second and once at the end.
    func didProgress(_ progress: DownloadProgress)

    /// Reports a failed attempt that a retry follows.
    func willRetry(_ retry: DownloadRetry)
}

extension DownloadSink {
    package func didReceive(
        _ head: DownloadHead,
        whole body: BodyChunk,
        at offset: Int64
    ) async throws(CacheError) {
        try await didReceiveHead(head)
        try await write(body, at: offset)
    }

    package func withdraw() {}
    package func willWait() {}
    package func shouldStop(at offset: Int64) -> Bool { false }
    package func canReplaceGeneration() -> Bool { true }
    package func storedRun(near offset: Int64) -> Range<Int64>? { nil }
    package func isStored(_ count: Int, of chunk: BodyChunk, at offset: Int64) async -> Bool {
        false
    }
    package func didProgress(_ progress: DownloadProgress) {}
    package func willRetry(_ retry: DownloadRetry) {}
}

/// An accepted response.
package struct DownloadHead: Sendable {
    /// The meaning of its body.
    package enum Kind: Hashable, Sendable {
        /// The first bytes of a new representation, from `start.offset`.
        case newGeneration(GenerationStart)
        /// More of the current generation, or with status 200 the whole of it again, because the
        /// origin does not support ranges. The length is as known now.
        case continuing(from: Int64, completeLength: Int64?)
        /// No body: the stored response is current, and its fields are to be freshened.
        case notModified
    }

    /// Status and fields as received from the last hop.
    package let response: HTTPResponse
    /// The meaning of its body.
    package let kind: Kind
    /// The URL after all redirects, without userinfo.
    package let finalTarget: TargetURI
    /// Whether the request of the last hop had cookies, so that the response may be for one client.
    package let hasCookies: Bool
    /// When the request of the last hop was sent.
    package let requestTime: WallTime
    /// When its response arrived.
    package let responseTime: WallTime
    /// Whether the owner of the directory stores it, or has stored it.
    package var isStoredByOwner = false
}

/// The end of a download without an error.
package struct DownloadOutcome: Hashable, Sendable {
    /// The kinds of ends.
    package enum End: Hashable, Sendable {
        /// All wanted bytes have arrived. The complete length is known at the end of a full body.
        case completed(completeLength: Int64?)
        /// The sink wanted no bytes from this offset on.
        case stopped(at: Int64)
        /// The stored response is current.
        case notModified
        /// A final status without a usable representation; its body was not read.
        case unsuccessful(HTTPResponse)
    }

    /// The kind of the end.
    package var end: End
    /// The number of body bytes received.
    package var bytesReceived: Int64 = 0
    /// The number of those at offsets that had been received before in the same download.
    package var bytesRefetched: Int64 = 0
    /// The number of requests sent, including redirects.
    package var requests = 0
    /// Whether the origin has mishandled ranges.
    package var areRangesUntrusted = false
    /// The length of responses that a throttling origin sends fast, in bytes; 0 if shorter ones
    /// were no faster, nil if no throttling was detected.
    package var fastLength: Int64?
    /// The target of permanent redirects; nil if there were none.
    package var permanentTarget: TargetURI?
    /// The URL after all redirects.
    package var finalTarget: TargetURI
}
