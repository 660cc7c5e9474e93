public import FoundationEssentials
import HTTPTypes
public import TieredCache

/// What an image library asks for bytes by: Nuke's `DataLoading`, Kingfisher's `ImageDownloader`,
/// SDWebImage's `SDImageLoader`.
public protocol ImageByteLoading: Sendable {
    /// Loads a body, in pieces as they come.
    ///
    /// Calls come on any thread, one after the other: `onBytes` for each piece, then `onEnd` once.
    ///
    /// - Parameters:
    ///   - request: the request for the bytes.
    ///   - onBytes: takes a piece, and the response that it belongs to.
    ///   - onEnd: takes the error; nil where all bytes have come. A status of 400 or more is an
    ///     error, as image libraries have it.
    /// - Returns: what ends the load; it goes on where it is dropped.
    @discardableResult
    func load(
        _ request: CacheRequest,
        onBytes: @escaping @Sendable (Data, CacheResponse) -> Void,
        onEnd: @escaping @Sendable (CacheError?) -> Void
    ) -> ImageLoad
}

/// A load that can be ended.
public struct ImageLoad: Sendable {
    private let task: Task<Void, Never>

    init(_ task: Task<Void, Never>) {
        self.task = task
    }

    /// Ends it: `onEnd` gets `.cancelled` unless it has ended before, and what has come stays cached.
    public func cancel() { task.cancel() }
}

extension MediaCache: ImageByteLoading {
    /// Loads a body, in pieces as they come, for what has no tasks; see ``ImageByteLoading``.
    @discardableResult
    public func load(
        _ request: CacheRequest,
        onBytes: @escaping @Sendable (Data, CacheResponse) -> Void,
        onEnd: @escaping @Sendable (CacheError?) -> Void
    ) -> ImageLoad {
        let task = Task {
            do throws(CacheError) {
                let response = try await successfulResponse(for: request)
                for try await piece in response.body { onBytes(piece, response) }
                onEnd(nil)
            } catch {
                onEnd(error)
            }
        }
        return ImageLoad(task)
    }
}

extension MediaCache {
    /// The response; a status of 400 or more is an error.
    func successfulResponse(for request: CacheRequest) async throws(CacheError) -> CacheResponse {
        try await operation(for: request).successfulResponse(for: request)
    }
}

extension RequestOperation {
    /// The response; a status of 400 or more is an error.
    func successfulResponse(for request: CacheRequest) async throws(CacheError) -> CacheResponse {
        let response = try await response()
        guard response.status.code >= 400 else { return response }
        throw CacheError(
            .httpStatus,
            "\(request.target.redacted) answered with status \(response.status.code)",
            status: response.status.code
        )
    }
}
