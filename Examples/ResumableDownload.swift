import FoundationEssentials
import TieredCache

/// A download that goes on where it stopped: after a lost network, a crash or a restart.
enum ResumableDownload: Example {
    static let usage = "download URL"

    static func run(_ arguments: [String]) async throws {
        guard let url = arguments.first else { throw UsageError() }
        let cache = try MediaCache()
        let request = try CacheRequest(url)
        // The job is on disk now; where it is there already, it goes on.
        let download = try await cache.downloads.start(request)
        for await status in download.progress {
            print("\(status.state.name): \(status.bytes) of \(status.total ?? -1) bytes")
            if status.state.isEnd { break }
        }
        // Throws the error of a download that failed. It stays on the list, and can be resumed.
        let end = try await download.wait()
        print("\(end.bytesFromOrigin) bytes from the origin, over all runs")
        if let file = try await cache.fileURL(for: request) {
            print("stored as \(file.path(percentEncoded: false))")
        }
        await download.acknowledge()
        await cache.shutdown()
    }
}
