public import FoundationEssentials
import HTTPCaching
public import TieredCache

/// What an image library keeps its own bytes in, such as scaled pictures: Nuke's `DataCaching`.
///
/// Calls block on the disk; such libraries make them on queues of their own.
public protocol ImageByteStoring: Sendable {
    /// The bytes of a key; nil where there are none, or where they cannot be read.
    func data(forKey key: String) -> Data?
    /// Whether there are bytes of a key.
    func contains(_ key: String) -> Bool
    /// Stores bytes, in place of those before; a cache that cannot store them is as before.
    func store(_ data: Data, forKey key: String)
    /// Removes the bytes of a key.
    func remove(_ key: String)
    /// Removes all bytes that were stored here.
    func removeAll()
}

/// Bytes of an image library in a cache: within its limits, evicted with all else.
///
/// They are never mixed with bodies of URLs, nor with those of a store with another name.
public struct ImageByteStore: ImageByteStoring {
    private let cache: MediaCache
    private let prefix: String

    /// Creates a store.
    ///
    /// - Parameters:
    ///   - cache: where the bytes are.
    ///   - name: tells several stores of one cache apart.
    public init(_ cache: MediaCache, named name: String = "images") {
        self.cache = cache
        prefix = "\(name.utf8.count) \(name) "
    }

    private func request(_ key: String) throws(CacheError) -> CacheRequest {
        // Never asked: what names the entry is the key.
        var request = try CacheRequest("https://store.invalid/", key: prefix + key)
        request.policy = .cacheOnly
        return request
    }

    /// The bytes of a key, from memory or disk.
    public func data(forKey key: String) -> Data? {
        wait { [self] () async throws(CacheError) in try await cache.data(for: request(key)) }
    }

    /// Whether there are bytes of a key.
    public func contains(_ key: String) -> Bool {
        wait { [self] () async throws(CacheError) in
            try await cache.contains(request(key))
        } ?? false
    }

    /// Stores bytes, in place of those before.
    public func store(_ data: Data, forKey key: String) {
        wait { [self] () async throws(CacheError) in
            try await cache.store(data, for: request(key))
        }
    }

    /// Removes the bytes of a key.
    public func remove(_ key: String) {
        wait { [self] () async throws(CacheError) in _ = try await cache.remove(request(key)) }
    }

    /// Removes all bytes of this store; those of URLs and of other stores stay.
    public func removeAll() {
        wait { [self] () async throws(CacheError) in
            for entry in try await cache.entries() {
                guard let key = entry.explicitKey, key.hasPrefix(prefix) else { continue }
                try await cache.remove(request(String(key.dropFirst(prefix.count))))
            }
        }
    }

    /// Blocks until a call has ended.
    ///
    /// - Returns: its value; nil where it failed: the protocols of image libraries know no errors,
    ///   and a store may lose anything at any time.
    @discardableResult
    private func wait<Value: Sendable>(
        _ body: @escaping @Sendable () async throws(CacheError) -> Value
    ) -> Value? {
        let gate = BlockingGate<Value>()
        Task {
            do throws(CacheError) {
                gate.open(with: .success(try await body()))
            } catch {
                gate.open(with: .failure(error))
            }
        }
        do throws(CacheError) {
            return try gate.wait()
        } catch {
            return nil
        }
    }
}
