import HTTPCaching
import HTTPTypes
import Logging
import NIOCore
import TieredCache

// Playlists: whole, as fresh as they must be, and with addresses that lead through the proxy.
extension MediaExchange {
    /// Whether the URL alone lets expect a playlist, or the key of one, before anything is asked
    /// for.
    var namesPlaylist: Bool {
        PlaylistKind.expected(contentType: nil, path: target.path) != nil
            || playlists.isKey(target)
    }

    /// Whether a response whose URL says nothing may be a playlist.
    func mayBePlaylist(_ response: CacheResponse) -> Bool {
        !namesPlaylist && response.completeLength ?? 0 <= PlaylistKind.maximumSize
            && PlaylistKind.expected(
                contentType: response.fields[.contentType],
                path: target.path
            ) != nil
    }

    /// Answers with the playlist, or the key.
    ///
    /// - Returns: false where it is none, or cannot be had; nothing has been sent then.
    func answerPlaylist(_ source: MediaSource) async throws -> Bool {
        let answer: PlaylistRelay.Answer
        switch try await playlist(source) {
        case .answer(let found): answer = found
        case .none: return false
        case .failed(let status):
            try await send(status, [:], .length(0))
            return true
        }
        guard answer.kind != nil || playlists.isKey(target) && answer.response.status.code == 200
        else { return false }
        guard !answer.isRefused else {
            settings.logger.warning(
                "a playlist is refused: what it asks for is out of proportion to its length",
                metadata: ["url": "\(target.redacted)"]
            )
            try await send(502, [:], .length(0))
            return true
        }
        try await send(answer, source)
        return true
    }

    private enum Playlist {
        case answer(PlaylistRelay.Answer)
        case none
        case failed(Int)
    }

    /// Asks the cache, again and again within the time for a first byte.
    private func playlist(_ source: MediaSource) async throws -> Playlist {
        let relay = PlaylistRelay(
            cache,
            prefix: prefix,
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
                switch error.code {
                case .originFailed: failure = .unavailable
                case .timedOut: failure = .timedOut
                default: return .none
                }
            }
            // What is stored has been tried, so there is nothing that a player could have had
            // before.
            guard let delay = retry.delay(after: failure, isKnown: false) else {
                return .failed(failure.status)
            }
            try await settings.timeSource.sleep(for: delay)
        }
    }

    private func send(_ answer: PlaylistRelay.Answer, _ source: MediaSource) async throws {
        guard destination.mayTake(answer.response.fields[.contentType]) else {
            return try await refuseBrowser()
        }
        var fields = source.fields(of: answer.response)
        fields[.acceptRanges] = "bytes"
        let outcome = conditions.outcome(
            tag: source.tag(of: answer.response),
            lastModified: answer.response.fields[.lastModified],
            now: settings.timeSource.wallTime()
        )
        let length = Int64(answer.bytes.count)
        switch outcome {
        case .notModified:
            return try await send(304, fields, .none)
        case .failed:
            return try await send(412, fields, .length(0))
        case .answer:
            guard let asked = conditions.range else { break }
            guard let range = asked.resolved(completeLength: length) else {
                return try await refuseRange(length)
            }
            fields[.contentRange] =
                ContentRange.bytes(range, completeLength: length).fieldValue
            let part = answer.bytes[Int(range.lowerBound)..<Int(range.upperBound)]
            return try await send(206, fields, Array(part))
        case .answerWhole:
            break
        }
        try await send(200, fields, answer.bytes)
    }

    private func send(_ status: Int, _ fields: HTTPFields, _ bytes: [UInt8]) async throws {
        let head = ResponseHead(
            status: status,
            fields: fields,
            framing: .length(Int64(bytes.count))
        )
        let body = request.isHead ? ByteBuffer() : ByteBuffer(bytes: bytes)
        try await writer.send(WholeAnswer(head: head, body: body))
    }
}
