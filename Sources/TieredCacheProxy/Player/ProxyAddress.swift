import HTTPCaching
import TieredCache

/// The address of a player proxy: its port and its secret token.
struct ProxyAddress: Hashable, Sendable {
    /// The port on 127.0.0.1.
    let port: Int
    /// The secret that the path of each URL begins with.
    let token: String

    init(port: Int, token: String) {
        self.port = port
        self.token = token
        host = "127.0.0.1:\(port)"
    }

    /// The `Host` that clients send.
    private let host: String

    /// The URL of the status page; a proxied URL consists of it, the scheme, `/` and the rest.
    var base: String { "http://127.0.0.1:\(port)/\(token)/" }

    /// The proxied URL of a target.
    func url(of target: TargetURI) -> String {
        // A path has no brackets (RFC 3986 §3.3), and `URL` refuses them there.
        let authority = target.authority.replacing("[", with: "%5B").replacing("]", with: "%5D")
        return "\(base)\(target.scheme.rawValue)/\(authority)\(target.originForm)"
    }

    /// The proxied URL of a text.
    ///
    /// - Throws: `.invalidURL` if it is no absolute `http` or `https` URL.
    func url(for url: String) throws(CacheError) -> String {
        do {
            return self.url(of: try TargetURI(url))
        } catch {
            throw CacheError(.invalidURL, "cannot proxy this URL: \(error)")
        }
    }

    /// Whether a `Host` field names this proxy.
    ///
    /// Other names are refused against DNS rebinding.
    func isNamed(by host: String) -> Bool {
        if host == self.host { return true }
        let host = host.lowercased()
        let names = ["127.0.0.1", "localhost"]
        return names.contains { host == "\($0):\(port)" || (port == 80 && host == $0) }
    }

    /// Compares a token in a time that does not depend on the number of equal characters.
    func hasToken(_ other: some StringProtocol) -> Bool {
        let (left, right) = (Array(token.utf8), Array(other.utf8))
        var difference = left.count ^ right.count
        // Over the length of what the client sent, which it knows anyway.
        for (index, byte) in right.enumerated() {
            difference |= Int(byte ^ left[index % max(1, left.count)])
        }
        return difference == 0 && !left.isEmpty
    }

    /// The fewest characters of a token, which is the only protection against other processes and
    /// pages.
    static let minimumTokenLength = 16

    /// Whether a text can be a token: unreserved characters, and too long to be guessed.
    static func isToken(_ text: String) -> Bool {
        (minimumTokenLength...256).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                    UInt8(ascii: "."), UInt8(ascii: "~"):
                    true
                default: false
                }
            }
    }

    /// A token of 128 random bits.
    static func randomToken() -> String {
        // getrandom(2) on Linux: not to be guessed from other tokens.
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in hexadecimal(generator.next()) }.joined()
    }

    /// 16 digits.
    static func hexadecimal(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
