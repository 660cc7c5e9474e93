import ArgumentParser

/// `--policy`: when the cache may answer and when the origin must.
enum PolicyArgument: String, CaseIterable, ExpressibleByArgument {
    /// Follow RFC 9111.
    case `default`
    /// Ask the origin for everything.
    case reload
    /// Use what is stored, of any age; else ask the origin.
    case cacheElseLoad = "cache-else-load"
    /// Use what is stored, of any age; never ask the origin.
    case cacheOnly = "cache-only"
}
