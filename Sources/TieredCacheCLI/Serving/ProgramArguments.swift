import HTTPCaching
import TieredCache

/// The arguments of a program that `exec` runs, and which of them are URLs to lead through the
/// proxy.
///
/// A URL is an argument as a whole (`-i URL`, `URL`), or what follows the first `=` of `NAME=URL`
/// (`--sub-file=URL`, `uri=URL`). It stays as it is where the name, or the option before it, says
/// that it is not opened but told: a referrer, a proxy, an origin.
struct ProgramArguments {
    /// The arguments, without the name of the program.
    let words: [String]
    /// The places from 1 on that are rewritten, whatever stands before them; empty for all that
    /// look like it.
    var only: [Int] = []
    /// The places that stay as they are.
    var except: [Int] = []

    /// The place of a URL in an argument.
    private struct Found {
        /// What precedes the URL: `NAME=`, or nothing.
        let name: Substring
        let url: Substring
    }

    /// Checks that the places are there, and are URLs.
    ///
    /// - Throws: ``CommandFailure`` with ``ExitStatus/usage``.
    func requirePlaces() throws(CommandFailure) {
        for (option, places) in [("--only", only), ("--except", except)] {
            for place in places {
                guard words.indices.contains(place - 1), Self.url(in: words[place - 1]) != nil
                else {
                    throw CommandFailure(
                        .usage,
                        message: "\(option) \(place): argument \(place) of the program is no http "
                            + "or https URL"
                    )
                }
            }
        }
    }

    /// Whether anything is to be rewritten.
    var hasURLs: Bool { words.indices.contains { isRewritten(at: $0) } }

    /// The arguments with proxied URLs.
    ///
    /// - Parameters:
    ///   - port: the port of the proxy; a URL that leads to it stays as it is.
    ///   - proxied: gives the proxied URL.
    /// - Returns: as many arguments.
    /// - Throws: what `proxied` throws.
    func rewritten(
        port: Int,
        by proxied: (String) throws(CacheError) -> String
    ) throws(CacheError) -> [String] {
        var result = words
        for index in words.indices where isRewritten(at: index) {
            guard let found = Self.url(in: words[index]) else { continue }
            let url = String(found.url)
            let origin = try ProxiedURL.target(of: url).origin
            let isProxied = origin.port == port && ["127.0.0.1", "localhost"].contains(origin.host)
            if isProxied { continue }
            result[index] = try found.name + ProxiedURL.text(of: url, by: proxied)
        }
        return result
    }

    private func isRewritten(at index: Int) -> Bool {
        guard let found = Self.url(in: words[index]), !except.contains(index + 1) else {
            return false
        }
        guard only.isEmpty else { return only.contains(index + 1) }
        if !found.name.isEmpty { return !Self.isTold(found.name) }
        guard index > 0, words[index - 1].hasPrefix("-") else { return true }
        return !Self.isTold(words[index - 1][...])
    }

    /// Whether the value of an option is told to a server, and not opened.
    private static func isTold(_ option: Substring) -> Bool {
        let name = option.lowercased()
        return ["refer", "proxy", "origin"].contains { name.contains($0) }
    }

    /// The URL of an argument; nil if it has none that can be used.
    private static func url(in word: String) -> Found? {
        if isURL(word[...]) { return Found(name: "", url: word[...]) }
        guard let sign = word.firstIndex(of: "=") else { return nil }
        let (name, url) = (word[...sign], word[word.index(after: sign)...])
        let isName = name.dropLast().allSatisfy {
            $0.isASCII && ($0.isLetter || $0.isNumber || "-_.:".contains($0))
        }
        return isName && name.count > 1 && isURL(url) ? Found(name: name, url: url) : nil
    }

    private static func isURL(_ text: Substring) -> Bool {
        let start = text.prefix(8).lowercased()
        guard start.hasPrefix("http://") || start.hasPrefix("https://") else { return false }
        do {
            _ = try TargetURI(String(text))
            return true
        } catch {
            // The program says itself what is wrong with it.
            return false
        }
    }
}
