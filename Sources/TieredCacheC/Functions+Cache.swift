import CLinuxCalls
public import CTieredCache
import SystemPackage
import TieredCache

// MARK: Versions

@c @implementation
public func tiered_abi() -> CInt { CInt(TIERED_ABI) }

@c @implementation
public func tiered_version() -> UnsafePointer<CChar>! { constant("0.1.0") }

@c @implementation
public func tiered_status_text(_ status: CInt) -> UnsafePointer<CChar>! {
    switch tiered_status(Int32(status)) {
    case TIERED_OK: constant("success")
    case TIERED_E_INVALID: constant("invalid argument, URL or offset")
    case TIERED_E_NOT_CACHED: constant("not stored, and the origin may not be asked")
    case TIERED_E_NETWORK: constant("the origin could not be reached, or broke the protocol")
    case TIERED_E_HTTP: constant("the origin answered with an error status")
    case TIERED_E_TIMEOUT: constant("no byte came before the deadline")
    case TIERED_E_CHANGED: constant("the origin has another representation by now")
    case TIERED_E_INTEGRITY: constant("the bytes do not have the promised digest")
    case TIERED_E_CANCELLED: constant("cancelled")
    case TIERED_E_INTERRUPTED: constant("interrupted; resume the stream first")
    case TIERED_E_AGAIN: constant("nothing has come yet")
    case TIERED_E_NOT_OWNER: constant("another process owns the cache directory")
    case TIERED_E_STORAGE: constant("the disk or the system refused")
    case TIERED_E_SHUT_DOWN: constant("the cache has been closed")
    case TIERED_E_FORKED: constant("this process is a fork of the one that opened the cache")
    case TIERED_E_NOT_FOUND: constant("there is no such entry, field or job")
    case TIERED_E_UNKNOWN: constant("not known yet")
    case TIERED_E_EXCLUDED: constant("a rule leaves the host alone, or the proxy serves the URL")
    default: constant("unknown status")
    }
}

/// Memory of a literal, which ends with a 0.
private func constant(_ text: StaticString) -> UnsafePointer<CChar> {
    UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}

// MARK: Caches

@c @implementation
public func tiered_cache_open(
    _ options: UnsafePointer<tiered_options>!,
    _ cache: UnsafeMutablePointer<OpaquePointer?>!
) -> CInt {
    status { () throws(Status) in
        // Before anything takes a lock, which a child would find taken.
        tc_begin_use()
        try give(to: cache, of: caches) { () throws(Status) in
            var given = tiered_options()
            if let options { given = try structure(options, empty: given) }
            return try OpenCaches.all.open(HostedOptions(given))
        }
    }
}

@c @implementation
public func tiered_cache_retain(_ cache: OpaquePointer!) -> OpaquePointer! {
    caches?.retain(cache)
}

@c @implementation
public func tiered_cache_release(_ cache: OpaquePointer!) {
    if let opened = caches?.release(cache) { OpenCaches.all.letGo(opened) }
}

@c @implementation
public func tiered_storage_status(
    _ cache: OpaquePointer!,
    _ buffer: UnsafeMutablePointer<CChar>!,
    _ count: Int
) -> CInt {
    status { () throws(Status) in
        let error = try hostedCache(cache).storageError
        try write(error?.description ?? "", to: buffer, count: count)
        if let error { throw Status(error) }
    }
}

@c @implementation
public func tiered_cache_statistics(
    _ cache: OpaquePointer!,
    _ statistics: UnsafeMutablePointer<tiered_statistics>!
) -> CInt {
    status { () throws(Status) in
        let cache = try hostedCache(cache).cache
        guard statistics != nil else { throw .invalid }
        let counted = cache.statistics
        var result = tiered_statistics()
        result.memory_hits = counted.memoryHits
        result.disk_hits = counted.diskHits
        result.misses = counted.misses
        result.bytes_from_memory = counted.bytesFromMemory
        result.bytes_from_disk = counted.bytesFromDisk
        result.bytes_from_origin = counted.bytesFromOrigin
        result.bytes_stored = counted.bytesStored
        result.bytes_evicted = counted.bytesEvicted
        result.blocks_damaged = counted.blocksDamaged
        result.storage_failures = counted.storageFailures
        result.downloads_started = counted.downloadsStarted
        result.downloads_finished = counted.downloadsFinished
        result.downloads_failed = counted.downloadsFailed
        result.downloads_shared = counted.downloadsShared
        if let usage = usage(of: cache) {
            result.entries = Int64(usage.entries)
            result.disk_bytes = usage.bytes
            result.disk_limit = usage.limit
        }
        try fill(statistics, with: result)
    }
}

/// Nil for a cache without a directory, or with one that cannot be used.
private func usage(of cache: MediaCache) -> DiskUsage? {
    do throws(Status) {
        return try waiting { () async throws(CacheError) in try await cache.usage() }
    } catch {
        return nil
    }
}
