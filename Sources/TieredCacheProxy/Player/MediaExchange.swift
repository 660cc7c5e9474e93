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
    /// What a browser that asks does with the answer.
    let destination: BrowserDestination
    /// What stands in front of `SCHEME/AUTHORITY/PATH` in proxied URLs.
    let prefix: String
    /// What playlists have said about other URLs.
    let playlists: PlaylistRegistry
    let sessions: PlayingSessions
    let answered: AnsweredItems
    /// Whether the client has been told anything.
    let start = AnswerStart()

    init(
        _ request: ServerRequest,
        _ target: TargetURI,
        cache: MediaCache,
        settings: ProxySettings,
        prefix: String,
        playlists: PlaylistRegistry,
        sessions: PlayingSessions,
        answered: AnsweredItems,
        writer: ResponseWriter
    ) {
        self.cache = cache
        self.settings = settings
        self.prefix = prefix
        self.playlists = playlists
        self.sessions = sessions
        self.answered = answered
        self.request = request
        self.target = target
        self.writer = writer
        conditions = PlayerConditions(request.fields, isHead: request.isHead)
        destination = BrowserDestination(request)
    }

    /// Answers; returns without having finished where the connection is to be dropped.
    func run() async throws {
        guard destination != .code else { return try await refuseBrowser() }
        var source = MediaSource(
            cache: cache,
            settings: settings,
            request: request,
            target: target,
            answered: answered
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
            try await answer(response, source)
        case .unsatisfiable(let length):
            try await answerBeyondEnd(length, source)
        case .failed(let status):
            try await send(status)
        case .lengthUnknown, .cut:
            // A known file that cannot be had now: an error would be taken for its bytes.
            return
        }
    }

    /// What is asked of the cache first.
    ///
    /// HEAD wants a head, which the first byte brings; so the body of a cold file is not fetched.
    private var firstRange: ByteRangeSpec? { request.isHead ? .bounded(0..<1) : conditions.range }

    /// Whether it asks for something else than the beginning, with which a new play begins.
    private var goesOn: Bool { conditions.range?.goesOn ?? false }

    // MARK: Answers

    private func answer(_ response: CacheResponse, _ source: MediaSource) async throws {
        guard destination.mayTake(response.fields[.contentType]) else {
            return try await refuseBrowser()
        }
        guard response.status.code == 200 else { return try await relay(response) }
        if mayBePlaylist(response), try await answerPlaylist(source) { return }
        switch outcome(of: response, source) {
        case .notModified:
            try await send(304, source.fields(of: response), .none)
        case .failed:
            try await send(412, source.fields(of: response), .length(0))
        case .answerWhole where conditions.range != nil:
            guard case .response(let whole) = try await source.open(nil) else { return }
            guard whole.status.code == 200 else { return try await relay(whole) }
            if !request.isHead { source.didAnswer() }
            try await deliver(whole, isPartial: false, source)
        case .answer, .answerWhole:
            let isPartial = conditions.range != nil
            if !request.isHead { source.didAnswer() }
            guard !response.hasValidator, !request.isHead else {
                return try await deliver(response, isPartial: isPartial, source)
            }
            try await sessions.play(.init(source.base)) {
                try await deliver(response, isPartial: isPartial, source)
            }
        }
    }

    /// The conditions come before the range (RFC 9110 §13.2.2): of a file that has become shorter
    /// since the player saw it, it is to have the new bytes, or to hear that there are some.
    private func answerBeyondEnd(_ length: Int64, _ source: MediaSource) async throws {
        guard conditions.hasConditions,
            case .response(let response) = try await source.open(.bounded(0..<1)),
            response.status.code == 200, outcome(of: response, source) != .answer
        else { return try await refuseRange(length) }
        try await answer(response, source)
    }

    private func outcome(
        of response: CacheResponse,
        _ source: MediaSource
    ) -> PlayerConditions.Outcome {
        conditions.outcome(
            tag: source.tag(of: response),
            lastModified: response.fields[.lastModified],
            now: settings.timeSource.wallTime()
        )
    }

    private func deliver(
        _ response: CacheResponse,
        isPartial: Bool,
        _ source: MediaSource
    ) async throws {
        var fields = source.fields(of: response)
        guard let length = response.completeLength else {
            // A part would need a concrete total; from the first byte on, everything is an answer.
            let framing: ResponseHead.Framing = request.isHead ? .none : .unknown
            try await writer.start(ResponseHead(status: 200, fields: fields, framing: framing))
            guard !request.isHead else { return try await finishHead(response) }
            start.begin()
            try await MediaPump(source, writer, tag: source.tag(of: response)).run(response)
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
        try await MediaPump(source, writer, tag: source.tag(of: response)).run(response)
        try await writer.finish()
    }

    /// Ends the answer to a HEAD, and takes the first block in, so that what was told lasts.
    private func finishHead(_ response: CacheResponse) async throws {
        try await writer.finish()
        var body = response.body.makeAsyncIterator()
        _ = try await body.next()
    }

    /// A final status other than 200, with its body.
    private func relay(_ response: CacheResponse) async throws {
        var fields = PlayerFields.of(
            response.fields,
            tag: nil,
            acceptsRanges: false,
            status: response.cacheStatus
        )
        // A browser would send what its user types to every origin behind this address.
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
        try await writer.send(WholeAnswer(head: head, body: ByteBuffer(copying: bytes)))
    }

    /// Nothing that could be active is shown in a tab or a frame, or run, at the proxy's own
    /// address.
    func refuseBrowser() async throws {
        var answer = WholeAnswer.text(403)
        answer.head.fields.append(contentsOf: PlayerFields.inert)
        try await writer.send(answer)
    }

    func refuseRange(_ length: Int64) async throws {
        var fields = HTTPFields()
        fields[.contentRange] = ContentRange.unsatisfied(completeLength: length).fieldValue
        fields[.acceptRanges] = "bytes"
        try await send(416, fields, .length(0))
    }

    private func send(_ status: Int) async throws {
        try await send(status, [:], .length(0))
    }

    func send(
        _ status: Int,
        _ fields: HTTPFields,
        _ framing: ResponseHead.Framing
    ) async throws {
        let head = ResponseHead(status: status, fields: fields, framing: framing)
        try await writer.send(WholeAnswer(head: head, body: ByteBuffer()))
    }
}

extension ByteRangeSpec {
    /// Whether it is not from the first byte on, with which a play begins.
    var goesOn: Bool {
        switch self {
        case .bounded(let range): range.lowerBound > 0
        case .openEnded(let start): start > 0
        case .suffix: true
        }
    }
}

extension CacheResponse {
    /// Whether the origin can be asked if it is current.
    fileprivate var hasValidator: Bool { fields[.eTag] != nil || fields[.lastModified] != nil }
}
