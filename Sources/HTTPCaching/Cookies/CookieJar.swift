package import HTTPTypes

/// The cookies that origins have set, and which of them a request has (RFC 6265 §5.3, §5.4).
///
/// A value: who makes a jar decides which requests share it, and how long it is kept.
package struct CookieJar: Hashable, Sendable {
    /// The most cookies, as many as browsers keep for one host at least.
    private static let maximumCount = 50

    /// In the order in which they were first set.
    private var cookies: [Cookie] = []

    /// Creates an empty jar.
    package init() {}

    /// Takes the cookies of a response, and drops those that have ended.
    ///
    /// - Parameters:
    ///   - fields: the fields of the response.
    ///   - target: the URL that answered.
    ///   - now: when it did.
    package mutating func take(_ fields: HTTPFields, from target: TargetURI, at now: WallTime) {
        for text in fields[values: .setCookie] {
            if let cookie = Cookie(text, from: target, at: now) { insert(cookie) }
        }
        cookies.removeAll { $0.expires.map { $0 <= now } ?? false }
    }

    /// Inserts a cookie, in the place of one of its name, domain and path.
    package mutating func insert(_ cookie: Cookie) {
        if let index = cookies.firstIndex(where: { $0.isReplaced(by: cookie) }) {
            cookies[index] = cookie
        } else {
            if cookies.count == Self.maximumCount { cookies.removeFirst() }
            cookies.append(cookie)
        }
    }

    /// The value of `Cookie` for a request.
    ///
    /// - Parameters:
    ///   - target: its URL.
    ///   - own: the value that it has without the jar, whose cookies of the same names are replaced.
    /// - Returns: the value; nil for none.
    package func field(for target: TargetURI, beside own: String? = nil) -> String? {
        let matching = cookies.filter { $0.isFor(target) }
        guard !matching.isEmpty else { return own }
        let names = Set(matching.map(\.name))
        let kept = (own ?? "").split(separator: ";").map { $0.trimmingWhitespace }
            .filter { !names.contains(String($0.prefix { $0 != "=" })) }
        // Sorting is stable: of equal paths the older one is first.
        let sorted = matching.sorted { $0.path.utf8.count > $1.path.utf8.count }
        return (kept + sorted.map { "\($0.name)=\($0.value)" }).joined(separator: "; ")
    }
}
