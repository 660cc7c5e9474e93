import HTTPCaching
import HTTPTypes
import NIOCore
import TieredCache

// The hit path: a plain GET for a stored response is answered on the event loop, without a task.
extension PlayerResponder {
    /// Fields with which a request selects a representation or a part of it.
    private static let notPlain: Set<String> = [
        "authorization", "cookie", "if-match", "if-modified-since", "if-none-match", "if-range",
        "if-unmodified-since", "origin", "service-worker",
    ]

    func immediateResponse(to request: ServerRequest) -> PendingResponse? {
        guard let address = address.value,
            let plain = PlainRequest(request, unless: Self.notPlain),
            let host = plain.host, address.isNamed(by: host),
            BrowserDestination(plain.destination) == .data
        else { return nil }
        let (rules, hits) = { ($0.rules, $0.hits) }(current.value)
        let known = hits.page(of: request.target)
        guard let page = known ?? newPage(for: request, host: host, address: address, by: rules),
            let hit = cache.immediateHit(page.request, range: plain.range), hit.status == 200,
            !mayBeKey(hit, at: page.request.target)
        else { return nil }
        let now = settings.timeSource.wallTime()
        guard
            let lines = page.lines(
                of: hit,
                now: now,
                { fields(of: hit, at: page.request.target, now: now) }
            )
        else {
            return nil
        }
        if known == nil { hits.keep(page, of: request.target) }
        return answer(
            with: hit,
            to: plain,
            lines: lines,
            request: request,
            target: page.request.target,
            by: rules
        )
    }

    /// Whether the response must be revalidated because a playlist has named its URL as a key.
    private func mayBeKey(_ hit: ImmediateHit, at target: TargetURI) -> Bool {
        hit.completeLength <= PlaylistRegistry.maximumKeySize && playlists.isKey(target)
    }

    private func newPage(
        for request: ServerRequest,
        host: String,
        address: ProxyAddress,
        by rules: HostRules
    ) -> ResponseHeadCache.Page? {
        let route = PlayerRoute(method: .get, target: request.target, host: host, address: address)
        guard case .media(let target) = route, !rules.excludes(target),
            PlaylistKind.expected(contentType: nil, path: target.path) == nil
        else { return nil }
        // Without the player's own fields: the page is for all players.
        return ResponseHeadCache.Page(RepeatedRequest(MediaSource.request(for: target, by: rules)))
    }

    /// The fields that ``MediaExchange`` would send; nil for a response that may be a playlist,
    /// which must be rewritten, and for one that depends on fields of the player.
    private func fields(of hit: ImmediateHit, at target: TargetURI, now: WallTime) -> HTTPFields? {
        let stored = hit.fields(now: now)
        guard !mayBePlaylist(hit, contentType: stored[.contentType], path: target.path),
            settings.relaysPlayerFields
                ? !stored.contains(.vary)
                : CacheRequest.negotiatingFields.isDisjoint(with: hit.selectingNames)
        else { return nil }
        let tag = GenerationTag.of(
            fields: stored,
            target: target,
            finalURL: hit.finalURL,
            generation: hit.head.generation
        )
        return PlayerFields.of(stored, tag: tag, acceptsRanges: true, status: hit.cacheStatus)
    }

    /// Whether the response may be a playlist, also where only its first bytes can tell.
    private func mayBePlaylist(_ hit: ImmediateHit, contentType: String?, path: String) -> Bool {
        if PlaylistKind.expected(contentType: contentType, path: path) != nil { return true }
        guard hit.completeLength <= PlaylistKind.maximumSize,
            PlaylistKind.isUntold(contentType: contentType)
        else { return false }
        let beginning = withUnsafeTemporaryAllocation(
            byteCount: PlaylistKind.maximumBeginning,
            alignment: 1
        ) { buffer in
            [UInt8](buffer.prefix(hit.bytes.copy(at: 0, into: buffer)))
        }
        return !PlaylistKind.isEnough(beginning) && beginning.count < hit.completeLength
            || PlaylistKind.of(beginning, contentType: contentType, path: path) != nil
    }

    private func answer(
        with hit: ImmediateHit,
        to plain: PlainRequest,
        lines: ByteBuffer,
        request: ServerRequest,
        target: TargetURI,
        by rules: HostRules
    ) -> PendingResponse {
        let count = hit.range.upperBound - hit.range.lowerBound
        var head = ResponseHead(
            status: plain.range == nil ? 200 : 206,
            framing: .length(count)
        )
        head.lines = lines
        if plain.range != nil {
            head.fields[.contentRange] =
                ContentRange.bytes(hit.range, completeLength: hit.completeLength).fieldValue
        }
        let generation = hit.head.generation
        return PendingResponse(head: head, bytes: hit.bytes, range: hit.range) { offset, writer in
            let source = MediaSource(
                cache: cache,
                settings: settings(with: rules),
                request: request,
                target: target,
                answered: answered,
                cookies: cookies
            )
            let rest = offset..<hit.range.upperBound
            await send(rest, from: source, generation: generation, to: writer)
        }
    }

    /// Sends the stored bytes of the rest of a hit.
    ///
    /// The hit has been counted as a whole.
    ///
    /// - Returns: the position of the first byte that is no longer stored; the end of `rest` if all
    ///   bytes were sent.
    private func sendPending(
        _ rest: Range<Int64>,
        of key: CacheKey,
        generation: UInt64,
        to writer: ResponseWriter
    ) async throws -> Int64 {
        var position = rest.lowerBound
        guard let stored = try await cache.storedBytes(rest, of: key, generation: generation)
        else { return position }
        var body = stored.makeAsyncIterator()
        do {
            while let count = try await writer.writeNext(of: &body) { position += count }
        } catch let error as CacheError {
            // A block was evicted or is damaged; the origin has it.
            guard error.code == .notCached else { throw error }
        }
        return position
    }

    /// Sends the rest of a response that the event loop has begun.
    private func send(
        _ rest: Range<Int64>,
        from source: MediaSource,
        generation: UInt64?,
        to writer: ResponseWriter
    ) async {
        let start = BodyStart()
        start.begin()
        await lingering(start: start, on: writer.executor) {
            guard let generation else { return }
            let sent = try await sendPending(
                rest,
                of: source.base.key,
                generation: generation,
                to: writer
            )
            guard sent < rest.upperBound else { return try await writer.finish() }
            let missing = sent..<rest.upperBound
            guard case .response(let response) = try await source.open(.bounded(missing)),
                response.status.code == 200,
                response.range == (missing.lowerBound, missing.upperBound),
                response.generation == generation
            else { return }
            try await MediaPump(source: source, writer: writer, tag: source.tag(of: response)).run(
                response
            )
            try await writer.finish()
        }
    }
}
