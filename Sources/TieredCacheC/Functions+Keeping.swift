import CTieredCache
import SystemPackage
import TieredCache

// What plays next, what stays, and the proxy.

@c @implementation
public func tiered_prefetch(
    _ cache: OpaquePointer!,
    _ urls: UnsafePointer<UnsafePointer<CChar>?>!,
    _ count: Int,
    _ bytes_each: Int64
) -> CInt {
    status { () throws(Status) in
        let hosted = try hostedCache(cache)
        guard (0...maximumPrefetches).contains(count), urls != nil || count == 0, bytes_each >= 0
        else { throw .invalid }
        var requests: [CacheRequest] = []
        let rules = hosted.proxy.rules
        for index in 0..<count {
            var request = try entryRequest(urls?[index], nil, by: rules)
            rules.apply(to: &request)
            if !rules.excludes(request.target) { requests.append(request) }
        }
        hosted.prefetch(requests, bytesEach: bytes_each)
    }
}

/// The longest list; what is further away is not next.
private let maximumPrefetches = 10_000

@c @implementation
public func tiered_prefetch_reserve(_ cache: OpaquePointer!, _ milliseconds: Int64) -> CInt {
    status { () throws(Status) in
        let hosted = try hostedCache(cache)
        guard milliseconds >= -1 else { throw .invalid }
        hosted.playerHas(
            milliseconds < 0 ? .nothingPlaying : .duration(.milliseconds(milliseconds))
        )
    }
}

/// A call about the entry that a URL or a key names; DISK.
private func entry<Value: Sendable>(
    _ cache: OpaquePointer?,
    _ url: UnsafePointer<CChar>?,
    _ key: UnsafePointer<CChar>?,
    _ body: @escaping @Sendable (MediaCache, CacheRequest) async throws(CacheError) -> Value
) throws(Status) -> Value {
    let hosted = try hostedCache(cache)
    let request = try entryRequest(url, key, by: hosted.proxy.rules)
    let cache = hosted.cache
    return try waiting { () async throws(CacheError) in try await body(cache, request) }
}

@c @implementation
public func tiered_pin(
    _ cache: OpaquePointer!,
    _ url: UnsafePointer<CChar>!,
    _ key: UnsafePointer<CChar>!,
    _ pinned: Bool
) -> CInt {
    status { () throws(Status) in
        let isThere = try entry(cache, url, key) { (cache, request) async throws(CacheError) in
            try await cache.setPinned(pinned, for: request)
        }
        guard isThere else { throw .notFound }
    }
}

@c @implementation
public func tiered_remove(
    _ cache: OpaquePointer!,
    _ url: UnsafePointer<CChar>!,
    _ key: UnsafePointer<CChar>!
) -> CInt {
    status { () throws(Status) in
        let wasThere = try entry(cache, url, key) { (cache, request) async throws(CacheError) in
            try await cache.remove(request)
        }
        guard wasThere else { throw .notFound }
    }
}

@c @implementation
public func tiered_file_path(
    _ cache: OpaquePointer!,
    _ url: UnsafePointer<CChar>!,
    _ key: UnsafePointer<CChar>!,
    _ buffer: UnsafeMutablePointer<CChar>!,
    _ count: Int
) -> Int64 {
    number { () throws(Status) in
        let path = try entry(cache, url, key) { (cache, request) async throws(CacheError) in
            try await cache.filePath(for: request)?.string
        }
        guard let path else { throw .notCached }
        return try write(path, to: buffer, count: count)
    }
}

// MARK: Rules for hosts

/// The most rules; each request looks at all of them.
private let maximumRules = 10_000

@c @implementation
public func tiered_host_rules(
    _ cache: OpaquePointer!,
    _ rules: UnsafePointer<UnsafePointer<CChar>?>!,
    _ count: Int
) -> Int64 {
    number { () throws(Status) in
        let hosted = try hostedCache(cache)
        guard (0...maximumRules).contains(count), rules != nil || count == 0 else { throw .invalid }
        var all = HostRules()
        for index in 0..<count {
            guard let pointer = rules?[index] else { throw .invalid }
            guard let line = String(validatingCString: pointer) else { return Int64(index) }
            do throws(CacheError) {
                try all.add(line)
            } catch {
                return Int64(index)
            }
        }
        hosted.setRules(all)
        return Int64(count)
    }
}

// MARK: The proxy

@c @implementation
public func tiered_proxy_start(_ cache: OpaquePointer!) -> CInt {
    status { () throws(Status) in try hostedCache(cache).proxy.start() }
}

@c @implementation
public func tiered_proxy_url(
    _ cache: OpaquePointer!,
    _ url: UnsafePointer<CChar>!,
    _ buffer: UnsafeMutablePointer<CChar>!,
    _ count: Int
) -> Int64 {
    number { () throws(Status) in
        let (proxy, url) = (try hostedCache(cache).proxy, try text(url))
        return try write(try proxy.url(for: url), to: buffer, count: count)
    }
}
