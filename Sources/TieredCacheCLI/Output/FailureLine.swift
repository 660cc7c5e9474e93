/// Why one of several URLs failed: the URL once, with its query, and the reason.
struct FailureLine: Equatable {
    let text: String

    /// - Parameters:
    ///   - url: as it was asked for.
    ///   - message: an error's, which usually names the URL without its query.
    init(_ url: String, _ message: String) {
        let bare = url.prefix { $0 != "?" }
        // Errors leave a query out, as it may hold a secret; the user has just typed it.
        let names = [url, "\(bare)?…", "\(bare)?...", String(bare)]
        for name in names {
            for prefix in ["cannot download \(name): ", "\(name): ", "\(name) "]
            where message.hasPrefix(prefix) {
                text = "\(url): \(message.dropFirst(prefix.count))"
                return
            }
        }
        text = "\(url): \(message)"
    }
}
