import FoundationEssentials
import HTTPCaching
import HTTPTypes
import NIOCore
import TieredCache

/// Moves a body from the cache to a player, and goes on where the origin failed.
///
/// The bytes are of one generation: where the cache no longer has the rest of it, the answer is cut
/// (invariant 3).
struct MediaPump: Sendable {
    private let source: MediaSource
    private let writer: ResponseWriter
    private let tag: EntityTag?

    init(_ source: MediaSource, _ writer: ResponseWriter, tag: EntityTag?) {
        self.source = source
        self.writer = writer
        self.tag = tag
    }

    /// Sends what `response` brings, to its end.
    ///
    /// Without a byte for the time of a stall it gives up.
    ///
    /// - Throws: what makes it impossible; the connection is to be dropped then.
    func run(_ response: CacheResponse) async throws {
        var response = response
        var position = response.range.lowerBound
        let end = response.range.upperBound
        var retry = OpenRetry(source.settings)
        while true {
            let start = position
            do throws(PumpFailure) {
                try await send(response, &position)
                return
            } catch {
                guard case .cache(let failure) = error, failure.isWorthAnotherTry else {
                    throw error
                }
                if position > start { retry = OpenRetry(source.settings) }
                guard let delay = retry.delay(after: .unavailable, isKnown: true) else {
                    throw error
                }
                try await source.settings.timeSource.sleep(for: delay)
                let rest: ByteRangeSpec =
                    end.map { .bounded(position..<$0) }
                    ?? .openEnded(from: position)
                response = try await reopened(rest)
            }
        }
    }

    private func send(
        _ response: CacheResponse,
        _ position: inout Int64
    ) async throws(PumpFailure) {
        var body = response.body.makeAsyncIterator()
        do {
            while let count = try await writer.writeNext(of: &body) {
                position += count
            }
        } catch let error as CacheError {
            throw .cache(error)
        } catch {
            throw .client
        }
    }

    /// The rest of the same generation.
    private func reopened(_ rest: ByteRangeSpec) async throws -> CacheResponse {
        guard case .response(let response) = try await source.open(rest),
            response.status.code == 200, let tag, source.tag(of: response) == tag,
            rest.begins(at: response.range.lowerBound)
        else { throw PumpFailure.gone }
        return response
    }
}

/// Why a body could not be sent to its end.
enum PumpFailure: Error {
    /// The cache, or the origin behind it.
    case cache(CacheError)
    /// The client has left.
    case client
    /// The generation is no longer to be had.
    case gone
}

extension CacheError {
    /// Whether the rest may still be had; of a status, asking for the rest tells.
    fileprivate var isWorthAnotherTry: Bool { isWithoutAnswer || code == .httpStatus }
}

extension ByteRangeSpec {
    fileprivate func begins(at offset: Int64) -> Bool {
        switch self {
        case .bounded(let range): range.lowerBound == offset
        case .openEnded(let start): start == offset
        case .suffix: false
        }
    }
}
