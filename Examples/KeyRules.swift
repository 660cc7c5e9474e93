import FoundationEssentials
import TieredCache

/// Rules for keys: one film has one entry, whatever its URL is signed with.
enum KeyRules: Example {
    static let usage = "keys URL..."

    /// Parameters of a URL that say that allow access, not which film it is.
    private static let signature: Set<String> = ["expires", "signature", "token"]

    /// A request with a key of its own: the URL without its signature, the other parameters in order.
    static func request(for url: String) throws -> CacheRequest {
        guard var parts = URLComponents(string: url) else {
            throw CacheError(.invalidURL, "cannot use '\(url)' as a URL")
        }
        let named = parts.queryItems?.filter { !signature.contains($0.name) } ?? []
        parts.queryItems = named.isEmpty ? nil : named.sorted { $0.name < $1.name }
        return try CacheRequest(url, key: parts.string)
    }

    static func run(_ arguments: [String]) async throws {
        guard !arguments.isEmpty else { throw UsageError() }
        let cache = try MediaCache()
        for url in arguments {
            let request = try request(for: url)
            let response = try await cache.response(for: request)
            let bytes = try await response.body.collect()
            print("\(request.explicitKey ?? ""): \(bytes.count) bytes from \(response.source)")
        }
        await cache.shutdown()
    }
}
