package import Foundation
import HTTPTypes
package import TieredCache
package import TieredCacheImages

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

/// Nuke's bytes from a cache: `ImagePipeline { $0.dataLoader = TieredDataLoader(cache: cache) }`.
///
/// Turn the pipeline's own disk cache for original data off: it would keep all twice.
package struct TieredDataLoader: DataLoading {
    let cache: MediaCache

    package init(cache: MediaCache) {
        self.cache = cache
    }

    package func loadData(
        with request: URLRequest
    ) async throws -> (AsyncThrowingStream<Data, any Error>, URLResponse) {
        guard let url = request.url else { throw URLError(.badURL) }
        var wanted = CacheRequest(url)
        for (name, value) in request.allHTTPHeaderFields ?? [:] {
            if let name = HTTPField.Name(name) { wanted.fields[name] = value }
        }
        let response = try await cache.response(for: wanted)
        let fields = response.fields.map { ($0.name.rawName, $0.value) }
        let head = HTTPURLResponse(
            url: url,
            statusCode: response.status.code,
            httpVersion: nil,
            headerFields: Dictionary(fields) { "\($0), \($1)" }
        )
        guard let head else { throw URLError(.badServerResponse) }
        let pieces = Pieces(response.body)
        // Pulled piece by piece, so that a pipeline that waits holds the download back.
        return (AsyncThrowingStream { try await pieces.iterator.next() }, head)
    }

    private final class Pieces: @unchecked Sendable {
        // Unchecked: a stream asks for one after the other.
        var iterator: ResponseBody.AsyncIterator

        init(_ body: ResponseBody) {
            iterator = body.makeAsyncIterator()
        }
    }
}

/// Nuke's processed images in a cache: `ImagePipeline { $0.dataCache = TieredDataCache(store) }`.
package struct TieredDataCache: DataCaching {
    let store: ImageByteStore

    package init(_ store: ImageByteStore) {
        self.store = store
    }

    package func cachedData(for key: String) -> Data? { store.data(forKey: key) }
    package func containsData(for key: String) -> Bool { store.contains(key) }
    package func removeData(for key: String) { store.remove(key) }
    package func removeAll() { store.removeAll() }

    // Has to return at once.
    package func storeData(_ data: Data, for key: String) {
        DispatchQueue.global().async { [store] in store.store(data, forKey: key) }
    }
}
