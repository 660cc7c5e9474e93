public import Foundation
import TieredCache

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

extension TieredURLProtocol {
    /// Downloads as `URLSession.download(for:)` does, through the cache of this class.
    ///
    /// For Linux, where Foundation takes no file from a class of an application: a download task of
    /// a session fails there.
    ///
    /// - Parameter request: a GET or HEAD without a body.
    /// - Returns: a new file in the temporary directory, which the caller moves or removes, and the
    ///   response.
    /// - Throws: `URLError`. No file stays then.
    public static func download(for request: URLRequest) async throws -> (URL, URLResponse) {
        guard let cache, let asked = LoadRequest(request) else {
            let text = "the request is none that a cache answers, or there is no cache in use"
            throw URLError(.unsupportedURL, text, url: request.url)
        }
        let file = FileManager.default.temporaryDirectory
            .appendingPathComponent("tieredcache-\(UUID().uuidString).tmp")
        do throws(CacheError) {
            let answer = try await asked.answer(from: cache)
            try await DownloadedFile(url: file).write(answer.bytes)
            return (file, answer.response)
        } catch {
            throw error.asURLError(for: asked.url)
        }
    }
}

/// A file that a body is written to, on a thread that may wait for the disk.
private struct DownloadedFile {
    let url: URL
    private let queue = DispatchQueue(label: "tieredcache.download")

    init(url: URL) {
        self.url = url
    }

    func write(_ body: ResponseBody.DecodedBytes) async throws(CacheError) {
        do throws(CacheError) {
            let handle = try await perform { [url] in
                let isMade = FileManager.default.createFile(
                    atPath: url.path,
                    contents: nil,
                    attributes: [.posixPermissions: 0o600]
                )
                guard isMade else { throw CocoaError(.fileWriteUnknown) }
                return try FileHandle(forWritingTo: url)
            }
            var body = body
            while let chunk = try await body.next() {
                try await perform { try handle.write(contentsOf: chunk) }
            }
            try await perform { try handle.close() }
        } catch {
            await remove()
            throw error
        }
    }

    /// Removes the file; one that is not there is no error.
    private func remove() async {
        do throws(CacheError) {
            try await perform { [url] in try FileManager.default.removeItem(at: url) }
        } catch {
            // The caller is told why the file was given up, which comes first.
        }
    }

    private func perform<Success: Sendable>(
        _ work: @escaping @Sendable () throws -> Success
    ) async throws(CacheError) -> Success {
        do {
            return try await withCheckedThrowingContinuation { continuation in
                queue.async { continuation.resume(with: Result(catching: work)) }
            }
        } catch {
            throw CacheError(.localStorage, "cannot write \(url.path): \(error)", cause: error)
        }
    }
}
