public import HTTPTypes

/// The directives of a request's `Cache-Control`, and `Pragma` (RFC 9111 §5.2.1, §5.4).
public struct RequestCacheControl: Hashable, Sendable {
    /// How stale a response may be.
    public enum MaxStale: Hashable, Sendable {
        /// `max-stale` without an argument: any age.
        case any
        /// `max-stale=n`: stale for at most n seconds.
        case seconds(Int64)
    }

    /// `max-age` in seconds, at most 2^31; zero if it is no number.
    public private(set) var maxAge: Int64?
    /// `min-fresh` in seconds.
    public private(set) var minFresh: Int64?
    /// `max-stale`.
    public private(set) var maxStale: MaxStale?
    /// `stale-if-error` in seconds (RFC 5861 §4).
    public private(set) var staleIfError: Int64?
    /// `no-cache`, or `Pragma: no-cache` where there is no `Cache-Control`.
    public private(set) var noCache = false
    /// `no-store`: store nothing of this exchange.
    public private(set) var noStore = false
    /// `only-if-cached`: do not ask the origin.
    public private(set) var onlyIfCached = false

    /// No directives.
    public init() {}

    /// Reads a field value, all its lines joined by commas.
    public init(_ fieldValue: String) {
        CacheControlParsing.forEachDirective(in: fieldValue) { name, argument in
            apply(name, argument: argument)
        }
    }

    /// Reads the fields of a request.
    public init(in fields: HTTPFields) {
        if let text = fields[.cacheControl] {
            self.init(text)
            return
        }
        self.init()
        guard let pragma = fields[.pragma] else { return }
        CacheControlParsing.forEachDirective(in: pragma) { name, _ in
            noCache = noCache || name == "no-cache"
        }
    }

    private mutating func apply(_ name: String, argument: CacheControlParsing.Argument) {
        switch name {
        // The stricter of repeated directives counts; one without a number allows nothing.
        case "max-age": maxAge = min(maxAge ?? .max, argument.seconds ?? 0)
        case "min-fresh": minFresh = max(minFresh ?? 0, argument.seconds ?? 0)
        case "max-stale": maxStale = narrower(maxStale, argument: argument)
        case "stale-if-error": staleIfError = min(staleIfError ?? .max, argument.seconds ?? 0)
        case "no-cache": noCache = true
        case "no-store": noStore = true
        case "only-if-cached": onlyIfCached = true
        default: break
        }
    }

    private func narrower(
        _ known: MaxStale?,
        argument: CacheControlParsing.Argument
    ) -> MaxStale {
        if case .none = argument {
            // A number beside a bare `max-stale` is the narrower permission.
            return known ?? .any
        }
        let seconds = argument.seconds ?? 0
        guard case .seconds(let other) = known else { return .seconds(seconds) }
        return .seconds(min(seconds, other))
    }
}

extension HTTPField.Name {
    /// `Pragma`, deprecated (RFC 9111 §5.4).
    static let pragma = makeStatic("Pragma")

    /// Creates a name from a valid literal.
    static func makeStatic(_ name: StaticString) -> HTTPField.Name {
        guard let name = HTTPField.Name("\(name)") else {
            preconditionFailure("\(name) is no field name")
        }
        return name
    }
}
