import TieredCache

/// A message on the terminal about a notice of a download.
struct NoticeLine: Equatable {
    let text: String

    /// - Returns: nil for a notice without a message, such as the start of a download.
    init?(_ notice: DownloadNotice, name: String) {
        switch notice {
        case .queued:
            return nil
        case .started(let offset):
            guard offset > 0 else { return nil }
            text = "\(name): going on at \(ProgressLine.size(offset))".asOneLine
        case .retrying(let retry):
            let attempt = "attempt \(retry.attempts + 1) of \(retry.maximumAttempts)"
            text =
                "\(name): \(retry.reason); trying again \(Self.when(retry.delay)) (\(attempt))"
                .asOneLine
        case .waitingForNetwork:
            text = "\(name): there is no network; waiting for it, what arrived is kept".asOneLine
        case .restarted:
            text = "\(name): what arrived cannot be used; fetching all of it again".asOneLine
        @unknown default:
            return nil
        }
    }

    private static func when(_ delay: Duration) -> String {
        let tenths = Int64(delay / .milliseconds(100))
        guard tenths > 0 else { return "now" }
        return tenths % 10 == 0 ? "in \(tenths / 10) s" : "in \(tenths / 10).\(tenths % 10) s"
    }
}
