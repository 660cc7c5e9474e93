import HTTPCaching
import TieredCache

/// The URL that a program opens in the place of another.
enum ProxiedURL {
    /// - Parameters:
    ///   - url: an absolute `http` or `https` URL.
    ///   - proxied: gives the proxied URL, without userinfo.
    /// - Returns: the proxied URL, with the userinfo of the given one: the program sends it to the
    ///   proxy, which passes it on to the origin.
    /// - Throws: `.invalidURL`.
    static func text(
        of url: String,
        by proxied: (String) throws(CacheError) -> String
    ) throws(CacheError) -> String {
        let result = try proxied(url)
        guard let userinfo = try target(of: url).userinfo else { return result }
        let scheme = "http://"
        return scheme + userinfo + "@" + result.dropFirst(scheme.count)
    }

    /// The target of a URL.
    ///
    /// - Throws: `.invalidURL`.
    static func target(of url: String) throws(CacheError) -> TargetURI {
        do {
            return try TargetURI(url)
        } catch {
            throw CacheError(.invalidURL, "cannot use '\(url)' as a URL: \(error)")
        }
    }
}
