import Foundation
import TieredCache

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A delegate that notes what it is told, for one task.
final class SessionDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
    struct Told {
        var response: URLResponse?
        var chunks: [Data] = []
        var completions = 0
        var error: URLError?
        var hasFile = false
    }

    private let told = Guarded(Told())
    private let end: AsyncStream<Void>
    private let ending: AsyncStream<Void>.Continuation
    private let chunk: AsyncStream<Void>
    private let receiving: AsyncStream<Void>.Continuation

    override init() {
        (end, ending) = AsyncStream.makeStream()
        (chunk, receiving) = AsyncStream.makeStream()
    }

    /// What was told by the end of the task.
    var all: Told {
        get async {
            for await _ in end { break }
            return told.withLock { $0 }
        }
    }

    /// Waits for the first bytes.
    func waitForBytes() async { for await _ in chunk { break } }

    var completions: Int { told.withLock { $0.completions } }

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        told.withLock { $0.response = response }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        told.withLock { $0.chunks.append(data) }
        receiving.yield()
    }

    func urlSession(
        _ session: URLSession,
        downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL
    ) {
        told.withLock { $0.hasFile = true }
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didCompleteWithError error: (any Error)?
    ) {
        told.withLock { told in
            told.completions += 1
            told.error = error as? URLError
        }
        ending.yield()
    }
}
