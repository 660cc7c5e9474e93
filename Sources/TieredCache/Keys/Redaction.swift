package import HTTPCaching

// The parts of a request that logs and error messages may show. Userinfo is a password, and a query
// often holds a signature that grants access until it expires.

extension TargetURI {
    /// The URI for logs: without userinfo, and `?...` in place of a query.
    package var redacted: String {
        "\(origin)\(path)" + (query == nil ? "" : "?...")
    }
}

extension CacheKey {
    /// The key for logs: a URL without its query, or the file name of any other key.
    ///
    /// A key that the application chose may hold anything, such as a posted body or a user's name.
    package var redacted: String {
        let isURL = string.hasPrefix("http://") || string.hasPrefix("https://")
        guard isURL, let mark = string.utf8.firstIndex(of: UInt8(ascii: "?")) else {
            return isURL ? string : "key \(fileName)"
        }
        return string[..<mark] + "?..."
    }
}
