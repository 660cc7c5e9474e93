/// The failure of one of several URLs: the URL once, with its query, and the reason.
struct FailureLine: Equatable {
    let text: String

    /// - Parameters:
    ///   - url: the URL as given by the user.
    ///   - message: the message of an error, which usually contains the URL without its query.
    init(url: String, message: String) {
        let bare = url.prefix { $0 != "?" }
        // Errors omit the query, because it may be a secret; the user has just typed it.
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
