public import HTTPTypes

/// The directives of a response's `Cache-Control` (RFC 9111 §5.2.2, RFC 5861, RFC 8246).
///
/// The more restrictive of repeated directives counts. A lifetime that is no number counts as zero
/// (RFC 9111 §4.2.1), a permission that is no number as absent. Unknown directives are ignored.
public struct ResponseCacheControl: Hashable, Sendable {
    /// Directives that are there or not.
    public struct Flags: OptionSet, Hashable, Sendable {
        /// One bit for each directive.
        public let rawValue: UInt16

        /// Creates a set from bits.
        public init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// `no-store`: store nothing (§5.2.2.5).
        public static let noStore = Flags(rawValue: 1 << 0)
        /// `no-cache` without field names: validate before every reuse (§5.2.2.4).
        public static let noCache = Flags(rawValue: 1 << 1)
        /// `private` without field names: not for shared caches (§5.2.2.7).
        public static let isPrivate = Flags(rawValue: 1 << 2)
        /// `public` (§5.2.2.9).
        public static let isPublic = Flags(rawValue: 1 << 3)
        /// `must-revalidate`: never serve stale (§5.2.2.2).
        public static let mustRevalidate = Flags(rawValue: 1 << 4)
        /// `proxy-revalidate`: the same for shared caches (§5.2.2.8).
        public static let proxyRevalidate = Flags(rawValue: 1 << 5)
        /// `must-understand`: store only if the status code is understood (§5.2.2.3).
        public static let mustUnderstand = Flags(rawValue: 1 << 6)
        /// `immutable`: the response does not change while it is fresh (RFC 8246).
        public static let immutable = Flags(rawValue: 1 << 7)
        /// `no-transform` (§5.2.2.6).
        public static let noTransform = Flags(rawValue: 1 << 8)
    }

    /// Directives that are there or not.
    public private(set) var flags: Flags = []
    /// `max-age` in seconds, at most 2^31.
    public private(set) var maxAge: Int64?
    /// `s-maxage` in seconds; for shared caches alone.
    public private(set) var sharedMaxAge: Int64?
    /// `stale-while-revalidate` in seconds (RFC 5861 §3).
    public private(set) var staleWhileRevalidate: Int64?
    /// `stale-if-error` in seconds (RFC 5861 §4).
    public private(set) var staleIfError: Int64?
    /// The fields of `no-cache="..."`, in lower case: not reused without validation.
    public private(set) var noCacheFields: [String] = []
    /// The fields of `private="..."`, in lower case: not stored by shared caches.
    public private(set) var privateFields: [String] = []

    /// Reads a field value, all its lines joined by commas.
    public init(_ fieldValue: String) {
        CacheControlParsing.forEachDirective(in: fieldValue) { name, argument in
            apply(name, argument: argument)
        }
    }

    /// Reads the field of a response; one without it has no directives.
    public init(in fields: HTTPFields) {
        self.init(fields.value(of: .cacheControl) ?? "")
    }

    /// Whether the directive is present.
    public func has(_ flag: Flags) -> Bool {
        flags.contains(flag)
    }

    mutating func apply(_ name: String, argument: CacheControlParsing.Argument) {
        switch name {
        case "max-age": maxAge = min(maxAge ?? .max, argument.seconds ?? 0)
        case "s-maxage": sharedMaxAge = min(sharedMaxAge ?? .max, argument.seconds ?? 0)
        case "stale-while-revalidate":
            staleWhileRevalidate = min(staleWhileRevalidate ?? .max, argument.seconds ?? 0)
        case "stale-if-error": staleIfError = min(staleIfError ?? .max, argument.seconds ?? 0)
        case "no-cache":
            // A list without a valid name restricts the whole response: the safe reading of an
            // error.
            noCacheFields += argument.fieldNames
            flags.formUnion(argument.fieldNames.isEmpty ? .noCache : [])
        case "private":
            privateFields += argument.fieldNames
            flags.formUnion(argument.fieldNames.isEmpty ? .isPrivate : [])
        case "no-store": flags.insert(.noStore)
        case "public": flags.insert(.isPublic)
        case "must-revalidate": flags.insert(.mustRevalidate)
        case "proxy-revalidate": flags.insert(.proxyRevalidate)
        case "must-understand": flags.insert(.mustUnderstand)
        case "immutable": flags.insert(.immutable)
        case "no-transform": flags.insert(.noTransform)
        default: break
        }
    }
}
