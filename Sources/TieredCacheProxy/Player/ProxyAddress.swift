import HTTPCaching

/// Where a player proxy is to be found, and who may find it.
struct ProxyAddress: Hashable, Sendable {
    /// The port on 127.0.0.1.
    let port: Int
    /// What a URL must begin with.
    let token: String

    init(port: Int, token: String) {
        self.port = port
        self.token = token
        host = "127.0.0.1:\(port)"
    }

    /// The usual `Host`.
    private let host: String

    /// The URL of the status page; a proxied URL is this, the scheme, `/` and the rest.
    var base: String { "http://127.0.0.1:\(port)/\(token)/" }

    /// The proxied URL of a target.
    func url(of target: TargetURI) -> String {
        "\(base)\(target.scheme.rawValue)/\(target.authority)\(target.originForm)"
    }

    /// Whether a `Host` field names this proxy; nobody else's page may reach it by another name
    /// (DNS rebinding).
    func isNamed(by host: String) -> Bool {
        if host == self.host { return true }
        let host = host.lowercased()
        let names = ["127.0.0.1", "localhost"]
        return names.contains { host == "\($0):\(port)" || (port == 80 && host == $0) }
    }

    /// Compares a token in a time that does not tell how much of it is right.
    func hasToken(_ other: some StringProtocol) -> Bool {
        let (left, right) = (Array(token.utf8), Array(other.utf8))
        var difference = left.count ^ right.count
        for (index, byte) in right.enumerated() {
            difference |= Int(byte ^ left[index % max(1, left.count)])
        }
        return difference == 0 && !left.isEmpty
    }

    /// The fewest characters of a token: it is all that keeps other processes and pages out.
    static let minimumTokenLength = 16

    /// Whether a text can be a token: visible in a path, and too long to be tried out.
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
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in hexadecimal(generator.next()) }.joined()
    }

    /// 16 digits.
    static func hexadecimal(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
