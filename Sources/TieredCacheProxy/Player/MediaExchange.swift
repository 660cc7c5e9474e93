import FoundationEssentials
import HTTPCaching
import HTTPTypes
import NIOCore
import TieredCache

/// Answers one GET or HEAD of a player for a representation of an origin.
struct MediaExchange: Sendable {
    let cache: MediaCache
    let settings: ProxySettings
    let request: ServerRequest
    let target: TargetURI
    let writer: ResponseWriter
    let conditions: PlayerConditions
    /// The use that a requesting browser announces.
    let destination: BrowserDestination
    /// The prefix of `SCHEME/AUTHORITY/PATH` in proxied URLs.
    let prefix: String
    /// The URLs that playlists have named.
    let playlists: PlaylistRegistry
    let sessions: PlayingSessions
    let answered: AnsweredItems
    let cookies: PlayerCookies
    /// Whether the response has begun.
    let start = BodyStart()

    init(
        request: ServerRequest,
        target: TargetURI,
        cache: MediaCache,
        settings: ProxySettings,
        prefix: String,
        playlists: PlaylistRegistry,
        sessions: PlayingSessions,
        answered: AnsweredItems,
        cookies: PlayerCookies,
        writer: ResponseWriter
    ) {
        self.cache = cache
        self.settings = settings
        self.prefix = prefix
        self.playlists = playlists
        self.sessions = sessions
        self.answered = answered
        self.cookies = cookies
        self.request = request
        self.target = target
        self.writer = writer
        conditions = PlayerConditions(request.fields, isHead: request.isHead)
        destination = BrowserDestination(request)
    }

    /// Sends the response; returns without finishing it where the connection must be dropped.
    func run() async throws {
        guard destination != .code else { return try await refuseBrowser() }
        var source = MediaSource(
            cache: cache,
            settings: settings,
            request: request,
            target: target,
            answered: answered,
            cookies: cookies
        )
        if namesPlaylist, try await answerPlaylist(source) { return }
        if goesOn, sessions.isPlayed(.init(source.base)) { source.usePending() }
        var opened = try await source.open(firstRange)
        if case .lengthUnknown = opened {
            try await source.findLength()
            opened = try await source.open(firstRange)
        }
        switch opened {
        case .response(let response):
            try await answer(with: response, from: source)
        case .unsatisfiable(let length):
            try await answerBeyondEnd(length: length, source: source)
        case .failed(let status):
            try await send(status)
        case .lengthUnknown, .cut:
            // The player has bytes of this file and would take an error response for more of them.
            return
        }
    }

    /// The range requested from the cache first.
    ///
    /// HEAD needs only the head, which comes with the first byte: the body is not fetched.
    private var firstRange: ByteRangeSpec? { request.isHead ? .bounded(0..<1) : conditions.range }

    /// Whether the range starts after the first byte; playback starts with a request for that one.
    private var goesOn: Bool { conditions.range?.goesOn ?? false }

    // MARK: Responses

    private func answer(with response: CacheResponse, from source: MediaSource) async throws {
        guard destination.mayTake(response.fields[.contentType]) else {
            return try await refuseBrowser()
        }
        guard response.status.code == 200 else { return try await relay(response) }
        let beginning = try await beginning(of: response, from: source)
        if mayBePlaylist(response, beginning), try await answerPlaylist(source) { return }
        switch outcome(of: response, from: source) {
        case .notModified:
            try await send(304, fields: source.fields(of: response), framing: .none)
        case .failed:
            try await send(412, fields: source.fields(of: response), framing: .length(0))
        case .answerWhole where conditions.range != nil:
            guard case .response(let whole) = try await source.open(nil) else { return }
            guard whole.status.code == 200 else { return try await relay(whole) }
            let beginning = try await self.beginning(of: whole, from: source)
            if mayBePlaylist(whole, beginning), try await answerPlaylist(source) { return }
            if !request.isHead { source.didAnswer() }
            try await deliver(whole, beginning, isPartial: false, from: source)
        case .answer, .answerWhole:
            let isPartial = conditions.range != nil
            if !request.isHead { source.didAnswer() }
            let send = { @Sendable in
                try await deliver(response, beginning, isPartial: isPartial, from: source)
            }
            guard !response.hasValidator, !request.isHead else { return try await send() }
            try await sessions.play(.init(source.base), during: send)
        }
    }

    /// Answers a range beyond the end.
    ///
    /// Conditions precede the range (RFC 9110 §13.2.2): if the file has become shorter since the
    /// player saw it, the player gets the new representation or learns that there is one.
    private func answerBeyondEnd(length: Int64, source: MediaSource) async throws {
        guard conditions.hasConditions,
            case .response(let response) = try await source.open(.bounded(0..<1)),
            response.status.code == 200, outcome(of: response, from: source) != .answer
        else { return try await refuseRange(length) }
        try await answer(with: response, from: source)
    }

    private func outcome(
        of response: CacheResponse,
        from source: MediaSource
    ) -> PlayerConditions.Outcome {
        conditions.outcome(
            tag: source.tag(of: response),
            lastModified: response.fields[.lastModified],
            now: settings.timeSource.wallTime()
        )
    }

    /// Sends the response; what has been read of its body comes first.
    private func deliver(
        _ response: CacheResponse,
        _ beginning: Data = Data(),
        isPartial: Bool,
        from source: MediaSource
    ) async throws {
        var fields = source.fields(of: response)
        guard let length = response.completeLength else {
            // A 206 needs a complete length; a body from its first byte on can be sent as a 200.
            let framing: ResponseHead.Framing = request.isHead ? .none : .unknown
            try await writer.start(ResponseHead(status: 200, fields: fields, framing: framing))
            guard !request.isHead else { return try await finishHead(response) }
            start.begin()
            try await MediaPump(source: source, writer: writer, tag: source.tag(of: response)).run(
                response,
                after: beginning
            )
            return try await writer.finish()
        }
        if request.isHead {
            let head = ResponseHead(status: 200, fields: fields, framing: .length(length))
            try await writer.start(head)
            return try await finishHead(response)
        }
        let range = response.range.lowerBound..<(response.range.upperBound ?? length)
        if isPartial {
            fields[.contentRange] =
                ContentRange.bytes(range, completeLength: length).fieldValue
        }
        let head = ResponseHead(
            status: isPartial ? 206 : 200,
            fields: fields,
            framing: .length(Int64(range.count))
        )
        try await writer.start(head)
        start.begin()
        try await MediaPump(source: source, writer: writer, tag: source.tag(of: response)).run(
            response,
            after: beginning
        )
        try await writer.finish()
    }

    /// Ends the response to a HEAD, and stores the first block, so that the fields sent stay valid.
    private func finishHead(_ response: CacheResponse) async throws {
        try await writer.finish()
        var body = response.body.makeAsyncIterator()
        _ = try await body.next()
    }

    /// Sends a final status other than 200, with its body.
    private func relay(_ response: CacheResponse) async throws {
        var fields = PlayerFields.of(
            response.fields,
            tag: nil,
            acceptsRanges: false,
            status: response.cacheStatus
        )
        // A browser would send the user's password to every origin behind this URL.
        if !request.isFromBrowser {
            fields[.wwwAuthenticate] = response.fields[.wwwAuthenticate]
        }
        let bytes = try await response.body.collect(upTo: 1 << 20)
        let head = ResponseHead(
            status: response.status.code,
            fields: fields,
            framing: [204, 304].contains(response.status.code)
                ? .none : .length(Int64(bytes.count))
        )
        try await writer.send(WholeResponse(head: head, body: ByteBuffer(copying: bytes)))
    }

    /// Refuses content that could run scripts with the proxy's own origin.
    func refuseBrowser() async throws {
        var answer = WholeResponse.text(403)
        answer.head.fields.append(contentsOf: PlayerFields.inert)
        try await writer.send(answer)
    }

    func refuseRange(_ length: Int64) async throws {
        var fields = HTTPFields()
        fields[.contentRange] = ContentRange.unsatisfied(completeLength: length).fieldValue
        fields[.acceptRanges] = "bytes"
        try await send(416, fields: fields, framing: .length(0))
    }

    private func send(_ status: Int) async throws {
        try await send(status, fields: [:], framing: .length(0))
    }

    func send(
        _ status: Int,
        fields: HTTPFields,
        framing: ResponseHead.Framing
    ) async throws {
        let head = ResponseHead(status: status, fields: fields, framing: framing)
        try await writer.send(WholeResponse(head: head, body: ByteBuffer()))
    }
}

extension ByteRangeSpec {
    /// Whether the range does not start at the first byte, with which playback starts.
    var goesOn: Bool {
        switch self {
        case .bounded(let range): range.lowerBound > 0
        case .openEnded(let start): start > 0
        case .suffix: true
        }
    }
}

extension CacheResponse {
    /// Whether the response can be revalidated.
    fileprivate var hasValidator: Bool { fields[.eTag] != nil || fields[.lastModified] != nil }
}
