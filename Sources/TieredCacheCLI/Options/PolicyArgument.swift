import ArgumentParser

/// The argument of `--policy`: when stored responses may be used.
enum PolicyArgument: String, CaseIterable, ExpressibleByArgument {
    /// Follow RFC 9111.
    case `default`
    /// Ask the origin for the whole response.
    case reload
    /// Use stored responses of any age; ask the origin only for missing ones.
    case cacheElseLoad = "cache-else-load"
    /// Use stored responses of any age; never ask the origin.
    case cacheOnly = "cache-only"
}
