import HTTPTypes
import TieredCacheTesting

/// Requests that are sent to two caches one after the other.
struct DifferentialSequence: Sendable {
    struct Request: Sendable {
        var method = "GET"
        var fields: [String] = []
    }

    let name: String
    let resource: OriginResource
    let script: OriginScript
    let requests: [Request]
    /// Why the two differ, and which of them the RFC asks for; nil where they do not.
    let difference: String?

    private init(
        _ name: String,
        _ fields: HTTPFields,
        _ requests: [Request],
        _ difference: String? = nil,
        script: OriginScript = OriginScript(),
        change: (inout OriginResource) -> Void = { _ in }
    ) {
        self.name = name
        var resource = OriginResource(.bytes(Array("0123456789".utf8)), fields: fields)
        change(&resource)
        self.resource = resource
        self.script = script
        self.requests = requests
        self.difference = difference
    }

    private static let get = Request()
    private static func get(_ fields: String...) -> Request { Request(fields: fields) }
    private static func request(_ method: String) -> Request { Request(method: method) }
    private static let fresh: HTTPFields = [.cacheControl: "max-age=60"]
    private static let longAgo = "Sun, 09 Sep 2001 01:46:40 GMT"
    private static let farAway = "Sun, 09 Sep 2035 01:46:40 GMT"

    /// The table.
    static let all: [DifferentialSequence] = storing + reusing + requesting + answering

    private static let storing: [DifferentialSequence] = [
        .init("fresh by max-age", fresh, [get, get]),
        .init("fresh by Expires", [.expires: farAway], [get, get]),
        .init("fresh by s-maxage", [.cacheControl: "max-age=0, s-maxage=60"], [get, get]),
        .init("no-store", [.cacheControl: "no-store"], [get, get]),
        .init("private", [.cacheControl: "private, max-age=60"], [get, get]),
        .init("expired on arrival", [.expires: "0"], [get, get]),
        .init("no-cache is validated", [.cacheControl: "no-cache"], [get, get]),
        .init("in chunks", fresh, [get, get]) { $0.framing = .chunked },
        .init("404", fresh, [get, get], script: OriginScript(.status(404).fresh)),
        .init(
            "301",
            fresh,
            [get, get],
            script: OriginScript(.redirect(to: "/x", status: 301).fresh)
        ),
        .init("Vary: *", fresh.with(.vary, "*"), [get, get]),
        .init(
            "Set-Cookie",
            fresh.with(.setCookie, "a=1"),
            [get, get],
            "nginx stores nothing with a Set-Cookie; RFC 9111 §7.3 leaves that to Cache-Control"
        ),
        .init(
            "heuristic freshness",
            [:],
            [get, get],
            "nginx guesses no lifetime; RFC 9111 §4.2.2 lets a cache do it"
        ) { $0.lastModified = longAgo },
        .init(
            "Authorization without leave",
            fresh,
            [get("Authorization: Basic YTpi"), get("Authorization: Basic YTpi")],
            "nginx stores it; a shared cache must not (RFC 9111 §3.5)"
        ),
        .init(
            "Authorization with public",
            [.cacheControl: "max-age=60, public"],
            [get("Authorization: Basic YTpi"), get]
        ),
        .init(
            "CDN-Cache-Control",
            HTTPFields([.init(name: .cdnCacheControl, value: "max-age=60")])
                .with(.cacheControl, "no-store"),
            [get, get],
            "nginx does not know RFC 9213"
        ),
    ]

    private static let reusing: [DifferentialSequence] = [
        .init(
            "variants",
            fresh.with(.vary, "Accept-Language"),
            [
                get("Accept-Language: en"), get("Accept-Language: de"), get("Accept-Language: en"),
            ]
        ),
        .init(
            "spelling of a variant",
            fresh.with(.vary, "Accept-Language"),
            [get("Accept-Language: en, de"), get("Accept-Language: de,EN")],
            "nginx compares the bytes; RFC 9111 §4.1 lets a cache normalise what means the same"
        ),
        .init(
            "old on arrival",
            fresh.with(.age, "100"),
            [get, get],
            "nginx does not count Age; it must be part of the age (RFC 9111 §4.2.3)"
        ),
        .init(
            "an unsafe method",
            fresh,
            [get, request("POST"), get],
            "nginx keeps what a POST may have changed; it must be invalidated (RFC 9111 §4.4)"
        ),
        .init("HEAD after GET", fresh, [get, request("HEAD")]),
        .init(
            "GET after HEAD",
            fresh,
            [request("HEAD"), get],
            "nginx asks with a GET for a HEAD and stores the body; here a HEAD stays a HEAD"
        ),
    ]

    private static let requesting: [DifferentialSequence] = [
        .init(
            "request no-cache",
            fresh,
            [get, get("Cache-Control: no-cache")],
            "nginx ignores directives of requests; no-cache asks for validation (RFC 9111 §5.2.1.4)"
        ),
        .init(
            "request Pragma",
            fresh,
            [get, get("Pragma: no-cache")],
            "nginx ignores Pragma in requests; without Cache-Control it is no-cache (RFC 9111 §5.4)"
        ),
        .init(
            "only-if-cached",
            fresh,
            [get("Cache-Control: only-if-cached"), get],
            "nginx forwards it; 504 is what it should be answered (RFC 9111 §5.2.1.7)"
        ),
        .init(
            "request max-age",
            fresh.with(.age, "10"),
            [get, get("Cache-Control: max-age=5")],
            "nginx ignores directives of requests; max-age is what the client accepts (§5.2.1.1)"
        ),
    ]

    private static let answering: [DifferentialSequence] = [
        .init("range of what is held", fresh, [get, get("Range: bytes=2-4")]),
        .init("suffix of what is held", fresh, [get, get("Range: bytes=-3")]),
        .init("range beyond the end", fresh, [get, get("Range: bytes=20-")]),
        .init("range first", fresh, [get("Range: bytes=2-4"), get("Range: bytes=5-6")]),
        .init(
            "If-Range of another",
            fresh,
            [get, get("Range: bytes=2-4", "If-Range: \"x\"")]
        ),
        .init("If-None-Match", fresh, [get, get("If-None-Match: \"x\", W/\"tag\"")]) {
            $0.entityTag = .custom("\"tag\"")
        },
        .init("If-None-Match of another", fresh, [get, get("If-None-Match: \"x\"")]),
        .init("If-None-Match: *", fresh, [get, get("If-None-Match: *")]),
        .init(
            "If-Modified-Since",
            fresh,
            [get, get("If-Modified-Since: \(longAgo)")]
        ) { $0.lastModified = longAgo },
        .init(
            "If-Match",
            fresh,
            [get, get("If-Match: \"x\"")],
            "nginx answers it from the cache; it is for the origin (RFC 9111 §4.3.2)"
        ),
    ]
}

extension HTTPFields {
    fileprivate func with(_ name: HTTPField.Name, _ value: String) -> HTTPFields {
        var fields = self
        fields[name] = value
        return fields
    }
}

extension HTTPField.Name {
    fileprivate static let cdnCacheControl = HTTPField.Name("CDN-Cache-Control") ?? .cacheControl
}

extension OriginBehaviour {
    fileprivate var fresh: OriginBehaviour { with { $0.overrides[.cacheControl] = "max-age=60" } }
}
