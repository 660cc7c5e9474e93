import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Logging
import NIOCore
import TieredCache

// Playlists: sent whole, revalidated as needed, with their URLs rewritten to the proxy.
extension MediaExchange {
    /// Whether the URL alone suggests a playlist or a key of one, before any lookup.
    var namesPlaylist: Bool {
        PlaylistKind.expected(contentType: nil, path: target.path) != nil
            || playlists.isKey(target)
    }

    /// Whether the response may be a playlist although its URL does not suggest one.
    ///
    /// - Parameters:
    ///   - response: the response.
    ///   - beginning: what ``beginning(of:from:)`` has read.
    /// - Returns: whether it may be one.
    func mayBePlaylist(_ response: CacheResponse, _ beginning: Data) -> Bool {
        let type = response.fields[.contentType]
        return !namesPlaylist && response.completeLength ?? 0 <= PlaylistKind.maximumSize
            && (PlaylistKind.expected(contentType: type, path: target.path) != nil
                || PlaylistKind.of(beginning, contentType: type, path: target.path) != nil)
    }

    /// The first bytes of a body whose head does not say what it is; empty for any other.
    ///
    /// They are read from the body, and have to be sent before the rest of it.
    func beginning(of response: CacheResponse, from source: MediaSource) async throws -> Data {
        guard !namesPlaylist, response.range.lowerBound == 0,
            response.completeLength ?? 0 <= PlaylistKind.maximumSize,
            PlaylistKind.isUntold(contentType: response.fields[.contentType])
        else { return Data() }
        var body = response.body.makeAsyncIterator()
        // For the response to HEAD the cache was asked for one byte.
        let needed = Int64(PlaylistKind.maximumBeginning)
        if request.isHead,
            case .response(let more) = try await source.open(.bounded(0..<needed))
        {
            body = more.body.makeAsyncIterator()
        }
        var bytes = Data()
        do throws(CacheError) {
            while !PlaylistKind.isEnough(bytes),
                let chunk = try await body.next(atMost: PlaylistKind.maximumBeginning)
            { bytes += chunk }
        } catch {
            // Who reads on meets it again, and can ask anew.
        }
        return bytes
    }

    /// Sends the playlist or the key.
    ///
    /// - Returns: false if the response is neither, or is not available; nothing has been sent
    ///   then.
    func answerPlaylist(_ source: MediaSource) async throws -> Bool {
        let answer: PlaylistRelay.Response
        switch try await playlist(source) {
        case .answer(let found): answer = found
        case .none: return false
        case .failed(let status):
            try await send(status, fields: [:], framing: .length(0))
            return true
        }
        guard answer.kind != nil || playlists.isKey(target) && answer.response.status.code == 200
        else { return false }
        guard !answer.isRefused else {
            settings.logger.warning(
                "a playlist is refused: what it asks for is out of proportion to its length",
                metadata: ["url": "\(target.redacted)"]
            )
            try await send(502, fields: [:], framing: .length(0))
            return true
        }
        try await send(answer, from: source)
        return true
    }

    private enum Playlist {
        case answer(PlaylistRelay.Response)
        case none
        case failed(Int)
    }

    /// Asks the cache repeatedly until the time limit for the first byte.
    private func playlist(_ source: MediaSource) async throws -> Playlist {
        let relay = PlaylistRelay(
            cache,
            prefix: prefix,
            rules: settings.rules,
            memory: playlists,
            time: settings.timeSource
        )
        var retry = OpenRetry(settings)
        while true {
            let failure: OpenRetry.Failure
            do throws(CacheError) {
                return .answer(try await relay.answer(source.base, within: retry.timeLeft()))
            } catch {
                settings.logger.debug("no playlist", metadata: ["error": "\(error)"])
                guard error.isWithoutResponse else { return .none }
                failure = OpenRetry.Failure(error)
            }
            // Stored responses were tried first, so no player can have received part of this one.
            guard let delay = retry.delay(after: failure, isKnown: false) else {
                return .failed(failure.status)
            }
            try await settings.timeSource.sleep(for: delay)
        }
    }

    private func send(_ answer: PlaylistRelay.Response, from source: MediaSource) async throws {
        guard destination.mayTake(answer.response.fields[.contentType]) else {
            return try await refuseBrowser()
        }
        let now = settings.timeSource.wallTime()
        var fields = source.fields(of: answer.response)
        fields[.acceptRanges] = "bytes"
        var tag = source.tag(of: answer.response)
        if answer.kind != nil {
            // A part of a list that only its first bytes tell of may have been given as it is.
            tag = tag.flatMap { EntityTag(opaque: "l" + $0.opaque) }
            fields[.eTag] = tag?.description
            fields[.lastModified] = nil
            // Of films none, as each one would make requests that share no transfer.
            fields.append(contentsOf: cookies.fields(of: answer.response, now: now))
        }
        let outcome = conditions.outcome(
            tag: tag,
            lastModified: fields[.lastModified],
            now: now
        )
        let length = Int64(answer.bytes.count)
        switch outcome {
        case .notModified:
            return try await send(304, fields: fields, framing: .none)
        case .failed:
            return try await send(412, fields: fields, framing: .length(0))
        case .answer:
            guard let asked = conditions.range else { break }
            guard let range = asked.resolved(completeLength: length) else {
                return try await refuseRange(length)
            }
            fields[.contentRange] =
                ContentRange.bytes(range, completeLength: length).fieldValue
            let part = answer.bytes[Int(range.lowerBound)..<Int(range.upperBound)]
            return try await send(206, fields: fields, bytes: Array(part))
        case .answerWhole:
            break
        }
        try await send(200, fields: fields, bytes: answer.bytes)
    }

    private func send(_ status: Int, fields: HTTPFields, bytes: [UInt8]) async throws {
        let head = ResponseHead(
            status: status,
            fields: fields,
            framing: .length(Int64(bytes.count))
        )
        let body = request.isHead ? ByteBuffer() : ByteBuffer(bytes: bytes)
        try await writer.send(WholeResponse(head: head, body: body))
    }
}
