import FoundationEssentials
import HTTPTypes
import Synchronization
import SystemPackage
import TieredCache

/// A transport of one's own: the files of a directory in the place of a network.
struct DirectoryTransport: Transport {
    let directory: FilePath

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let name = FilePath(request.head.path ?? "/").components
        guard let path = directory.lexicallyResolving(FilePath(root: nil, name)) else {
            throw TransportError(.invalidRequest, "\(name) is outside of \(directory)")
        }
        do {
            let bytes = [UInt8](try Data(contentsOf: URL(filePath: path.string)))
            let fields: HTTPFields = [
                .contentLength: "\(bytes.count)", .cacheControl: "max-age=3600",
            ]
            return TransportResponse(
                head: HTTPResponse(status: .ok, headerFields: fields),
                body: FileBody(bytes)
            )
        } catch {
            return TransportResponse(head: HTTPResponse(status: .notFound), body: FileBody([]))
        }
    }

    func shutdown() async {}
}

/// A body in memory, in pieces of 64 KiB.
final class FileBody: TransportBody {
    /// Nil after ``cancel()``.
    private let rest: Mutex<ArraySlice<UInt8>?>

    init(_ bytes: [UInt8]) { rest = Mutex(bytes[...]) }

    func next() async throws(TransportError) -> BodyChunk? {
        let piece = rest.withLock { rest in
            let piece = rest?.prefix(64 << 10)
            rest = rest?.dropFirst(64 << 10)
            return piece
        }
        guard let piece else { throw TransportError(.cancelled, "the body was cancelled") }
        return piece.isEmpty ? nil : BodyChunk(Array(piece))
    }

    func cancel() { rest.withLock { $0 = nil } }
}

enum CustomTransport: Example {
    static let usage = "transport DIRECTORY NAME..."

    static func run(_ arguments: [String]) async throws {
        guard let directory = arguments.first else { throw UsageError() }
        var configuration = MediaCache.Configuration(directory: nil)
        configuration.transport = DirectoryTransport(directory: FilePath(directory))
        // Nothing leaves this machine, so no network has to be there.
        configuration.networkMonitor = nil
        let cache = try MediaCache(configuration)
        for name in arguments.dropFirst() {
            let bytes = try await cache.data(for: CacheRequest("http://files.invalid/\(name)"))
            print("\(name): \(bytes.count) bytes")
        }
        await cache.shutdown()
    }
}
