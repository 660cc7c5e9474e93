import HTTPCaching
import HTTPTypes
import NIOCore
import TieredCache

// The hit path: a plain GET for what is stored is answered on the event loop, without a task.
extension PlayerResponder {
    /// Fields with which a request selects something, or asks for less than everything.
    private static let notPlain: Set<String> = [
        "authorization", "cookie", "if-match", "if-modified-since", "if-none-match", "if-range",
        "if-unmodified-since", "service-worker",
    ]

    func immediateAnswer(to request: ServerRequest) -> PendingResponse? {
        guard let address = address.value,
            let plain = PlainRequest(request, unless: Self.notPlain),
            let host = plain.host, address.isNamed(by: host),
            BrowserDestination(plain.destination) == .data
        else { return nil }
        let known = hits.page(of: request.target)
        guard let page = known ?? newPage(request, host, address),
            let hit = cache.immediateHit(page.request, range: plain.range), hit.status == 200,
            !mayBeKey(hit, page.request.target)
        else { return nil }
        let now = settings.timeSource.wallTime()
        guard
            let lines = page.lines(of: hit, now: now, { fields(of: hit, page.request.target, now) })
        else {
            return nil
        }
        if known == nil { hits.keep(page, of: request.target) }
        return answer(hit, plain, lines, request, page.request.target)
    }

    /// Whether the answer has to be current because a playlist has named it as a key.
    private func mayBeKey(_ hit: ImmediateHit, _ target: TargetURI) -> Bool {
        hit.completeLength <= PlaylistRegistry.maximumKeySize && playlists.isKey(target)
    }

    private func newPage(
        _ request: ServerRequest,
        _ host: String,
        _ address: ProxyAddress
    ) -> ResponseHeadCache.Page? {
        let route = PlayerRoute(method: .get, target: request.target, host: host, address: address)
        guard case .media(let target) = route,
            PlaylistKind.expected(contentType: nil, path: target.path) == nil
        else { return nil }
        return ResponseHeadCache.Page(
            RepeatedRequest(MediaSource.request(for: target, from: request))
        )
    }

    /// As ``MediaExchange`` answers; nil for what may be a playlist, which is rewritten.
    private func fields(of hit: ImmediateHit, _ target: TargetURI, _ now: WallTime) -> HTTPFields? {
        let stored = hit.fields(now: now)
        guard PlaylistKind.expected(contentType: stored[.contentType], path: target.path) == nil
        else { return nil }
        let tag = GenerationTag.of(
            fields: stored,
            target: target,
            finalURL: hit.finalURL,
            generation: hit.head.generation
        )
        return PlayerFields.of(stored, tag: tag, acceptsRanges: true, status: hit.cacheStatus)
    }

    private func answer(
        _ hit: ImmediateHit,
        _ plain: PlainRequest,
        _ lines: ByteBuffer,
        _ request: ServerRequest,
        _ target: TargetURI
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
                settings: settings,
                request: request,
                target: target,
                answered: answered
            )
            await finish(source, offset..<hit.range.upperBound, of: generation, writer)
        }
    }

    /// Sends what is stored of the rest of a hit, which has been counted as a whole.
    ///
    /// - Returns: the first byte that is not stored any more; the end of `rest` if all of it is.
    private func sendPending(
        _ rest: Range<Int64>,
        of target: TargetURI,
        _ generation: UInt64,
        _ writer: ResponseWriter
    ) async throws -> Int64 {
        var position = rest.lowerBound
        guard let stored = try await cache.storedBytes(rest, of: target, generation: generation)
        else { return position }
        var body = stored.makeAsyncIterator()
        do {
            while let count = try await writer.writeNext(of: &body) { position += count }
        } catch let error as CacheError {
            // A block was given up, or is damaged: the origin has it.
            guard error.code == .notCached else { throw error }
        }
        return position
    }

    /// Sends the rest of an answer that the event loop has begun.
    private func finish(
        _ source: MediaSource,
        _ rest: Range<Int64>,
        of generation: UInt64?,
        _ writer: ResponseWriter
    ) async {
        let start = AnswerStart()
        start.begin()
        await lingering(start) {
            guard let generation else { return }
            let sent = try await sendPending(rest, of: source.target, generation, writer)
            guard sent < rest.upperBound else { return try await writer.finish() }
            let missing = sent..<rest.upperBound
            guard case .response(let response) = try await source.open(.bounded(missing)),
                response.status.code == 200,
                response.range == (missing.lowerBound, missing.upperBound),
                response.generation == generation
            else { return }
            try await MediaPump(source, writer, tag: source.tag(of: response)).run(response)
            try await writer.finish()
        }
    }
}
