import FoundationEssentials
import HTTPCaching
import HTTPTypes
import NIOCore
import TieredCache

/// Sends a body from the cache to a player, and resumes after failures of the origin.
///
/// All bytes belong to one generation: if the rest of it is no longer available, the response is
/// cut off (invariant 3).
struct MediaPump: Sendable {
    private let source: MediaSource
    private let writer: ResponseWriter
    private let tag: EntityTag?

    init(source: MediaSource, writer: ResponseWriter, tag: EntityTag?) {
        self.source = source
        self.writer = writer
        self.tag = tag
    }

    /// Sends the body of `response` to its end.
    ///
    /// Gives up after ``ProxySettings/stallTimeout`` without a byte.
    ///
    /// - Parameters:
    ///   - response: the response.
    ///   - beginning: what has been read of its body, and is sent first.
    /// - Throws: the reason why the body is incomplete; the connection must be dropped then.
    func run(_ response: CacheResponse, after beginning: Data = Data()) async throws {
        var response = response
        var position = response.range.lowerBound + Int64(beginning.count)
        if !beginning.isEmpty { try await writer.write(beginning) }
        let end = response.range.upperBound
        var retry = OpenRetry(source.settings)
        while true {
            let start = position
            do throws(PumpFailure) {
                try await send(response, position: &position)
                return
            } catch {
                guard case .cache(let failure) = error, failure.isWorthAnotherTry else {
                    throw error
                }
                // The time limit is for silence: bytes begin it anew.
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
        position: inout Int64
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

    /// Requests the rest of the same generation.
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
    /// The cache or the origin failed.
    case cache(CacheError)
    /// The client has left.
    case client
    /// The generation is no longer available.
    case gone
}

extension CacheError {
    /// Whether a retry may bring the rest; for a status, the retry itself shows that.
    fileprivate var isWorthAnotherTry: Bool { isTransient || code == .httpStatus }
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
