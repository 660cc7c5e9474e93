package import HTTPCaching
package import SystemPackage

extension MediaCache {
    /// Answers like ``response(for:)``, but asks the origin in pieces of our own shape.
    ///
    /// For players, which leave in the middle and come back elsewhere: the body costs little more
    /// than what is read of it, and a transfer that is under way lingers for the next request.
    ///
    /// - Parameters:
    ///   - request: what is wanted.
    ///   - deadline: how long its body waits for a byte.
    /// - Returns: the response.
    /// - Throws: what ``response(for:)`` throws.
    package func streamedResponse(
        for request: CacheRequest,
        deadline: Duration = .seconds(30)
    ) async throws(CacheError) -> CacheResponse {
        try await responder.streamedResponse(for: request, deadline: deadline)
    }

    /// Opens a reader over an entry that is stored, by its key alone.
    ///
    /// - Parameters:
    ///   - key: as ``EntrySummary/key`` gives it.
    ///   - options: deadline and read-ahead.
    /// - Returns: the reader.
    /// - Throws: `.notCached` if nothing is stored under the key; what
    ///   ``reader(for:at:expectedEnd:options:)`` throws.
    public func reader(
        forKey key: CacheKey,
        options: ReaderOptions = ReaderOptions()
    ) async throws(CacheError) -> CacheReader {
        guard let entry = try await engine.storage.summary(of: key), !entry.url.isEmpty else {
            throw CacheError(.notCached, "nothing is stored under the key \(key.redacted)")
        }
        let request = try CacheRequest(entry.url, key: entry.explicitKey)
        guard request.key == key else {
            throw CacheError(.notCached, "the entry under \(key.redacted) is no answer to GET")
        }
        return try await ReaderOpener(responder: responder, request: request, options: options)
            .reader()
    }

    /// A reader for blocking callers; it sends no request before it is opened or read.
    ///
    /// - Parameters:
    ///   - request: the request to read; its range is ignored.
    ///   - options: deadline and read-ahead.
    /// - Returns: the reader.
    public func blockingReader(
        for request: CacheRequest,
        options: ReaderOptions = ReaderOptions()
    ) -> BlockingReader {
        let opener = ReaderOpener(responder: responder, request: request, options: options)
        return BlockingReader(
            request,
            options: options,
            time: engine.time,
            atHand: { opener.readerAtHand() },
            open: { () async throws(CacheError) in try await opener.reader() }
        )
    }

    /// The same as ``fileURL(for:)``, as a path.
    package func filePath(for request: CacheRequest) async throws(CacheError) -> FilePath? {
        try await responder.filePath(for: request)
    }

    /// What answers a request at once, without waiting for anything; counted as a hit.
    ///
    /// Synchronous, and never blocks on the disk.
    ///
    /// - Parameters:
    ///   - repeated: what is wanted.
    ///   - range: which bytes of it; nil for all.
    /// - Returns: nil, whatever the reason; then ``response(for:)`` answers.
    package func immediateHit(
        _ repeated: RepeatedRequest,
        range: ByteRangeSpec?
    ) -> ImmediateHit? {
        responder.hit(for: repeated, range: range)
    }

    /// Bytes of a certain body that is stored, read on the threads that may wait.
    ///
    /// For the rest of a response that ``immediateHit(_:range:)`` has begun.
    ///
    /// - Parameters:
    ///   - range: which bytes.
    ///   - key: the key of the request.
    ///   - generation: the number of the body.
    /// - Returns: nil if the cache has another body by now, or none.
    /// - Throws: `.localStorage`.
    package func storedBytes(
        _ range: Range<Int64>,
        of key: CacheKey,
        generation: UInt64
    ) async throws(CacheError) -> ResponseBody? {
        guard let entry = try await engine.storage.entry(for: key, isUse: true),
            entry.generation == generation
        else { return nil }
        let wanted = WantedRange(range)
        return ResponseBody(
            EntryReader(EntryOpening(entry: entry, storage: engine.storage), wanted: wanted)
        )
    }

    /// Calls `action` whenever this process has begun to own the directory or owns it no more, and
    /// at once if it owns it; ``storageError`` tells.
    ///
    /// - Parameter action: called on any thread, perhaps twice; must not wait.
    package func whenOwnershipChanges(_ action: @escaping @Sendable () -> Void) {
        engine.storage.disk.whenOwnershipChanges(action)
    }

    /// Threads for calls that may wait for the file system.
    package var writers: IOExecutor { engine.storage.writers }
}
