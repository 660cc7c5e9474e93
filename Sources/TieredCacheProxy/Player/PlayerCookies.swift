import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TieredCache

/// The cookies that playlists set, which each player keeps itself, as cookies of this proxy.
///
/// The name of such a cookie says which origin it is from and where it is sent (``Cookie/scope``);
/// which of them a request to an origin has, the proxy decides as RFC 6265 says. So each player has
/// a jar of its own, and a player without one is as badly off as without the proxy.
struct PlayerCookies: Sendable {
    /// Browsers drop longer ones.
    private static let maximumSize = 4096

    private let prefix: String
    private let path: String

    /// Creates the cookies of a proxy with a token.
    init(token: String) {
        // Other servers of the machine can set cookies for this one, but do not know the token.
        prefix = "tieredcache-\(SHA256Digest.hex(of: "cookies \(token)").prefix(16))-"
        path = "/\(token)/"
    }

    /// The `Set-Cookie` fields for a player, in the place of those of a response.
    func fields(of response: CacheResponse, now: WallTime) -> [HTTPField] {
        guard response.isForThisRequest else { return [] }
        return response.fields[values: .setCookie].compactMap { text in
            guard let cookie = Cookie(text, from: response.finalTarget, at: now) else { return nil }
            let end = cookie.expires.map { now.duration(to: $0).components.seconds }
            let text =
                "\(prefix)\(Self.encoded(cookie.scope))=\(cookie.value); Path=\(path); HttpOnly"
                + (end.map { "; Max-Age=\(max(0, $0))" } ?? "")
            return text.utf8.count <= Self.maximumSize
                ? HTTPField(name: .setCookie, value: text) : nil
        }
    }

    /// The `Cookie` field of a request to an origin.
    ///
    /// - Parameters:
    ///   - player: the `Cookie` fields of the player's request.
    ///   - target: the URL of the origin.
    ///   - includesOthers: whether cookies that are not this proxy's are passed on.
    /// - Returns: the value; nil for none.
    func field(of player: [String], for target: TargetURI, includesOthers: Bool) -> String? {
        var jar = CookieJar()
        var others: [Substring] = []
        for pair in player.joined(separator: ";").split(separator: ";") {
            let pair = pair.drop { $0 == " " || $0 == "\t" }
            let name = pair.prefix { $0 != "=" }
            if !name.hasPrefix(prefix) {
                others.append(pair)
            } else if let scope = Self.decoded(name.dropFirst(prefix.count)),
                let cookie = Cookie(scope: scope, value: String(pair[name.endIndex...].dropFirst()))
            {
                jar.insert(cookie)
            }
        }
        let own = includesOthers && !others.isEmpty ? others.joined(separator: "; ") : nil
        return jar.field(for: target, beside: own)
    }

    /// In the characters of a cookie's name (RFC 4648 §5).
    private static func encoded(_ text: String) -> String {
        Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
            .replacing("=", with: "")
    }

    private static func decoded(_ text: Substring) -> String? {
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        let base64 = text.replacing("-", with: "+").replacing("_", with: "/") + padding
        return Data(base64Encoded: String(base64)).map { String(decoding: $0, as: UTF8.self) }
    }
}

extension CacheResponse {
    /// Whether the origin has sent the fields for this request and no other.
    var isForThisRequest: Bool { headSource == .origin && !cacheStatus.isCollapsed }
}
