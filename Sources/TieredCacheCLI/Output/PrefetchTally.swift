import TieredCache

/// The state of several prefetches, for one line on a terminal.
///
/// Includes the resources of playlists, the number of which is unknown before the playlists are
/// read.
struct PrefetchTally {
    private struct Part {
        var offset: Int64 = 0
        var length: Int64?
    }

    private let names: [String]
    /// Whether only the beginning of each is fetched.
    private let isOfHeads: Bool
    private var parts: [CacheKey: Part] = [:]
    private var ended = 0
    private var bytesFromOrigin: Int64 = 0
    private var bytesFromCache: Int64 = 0
    /// The available body bytes, including those stored before.
    private(set) var bytes: Int64 = 0

    /// - Parameters:
    ///   - names: the names of the requests, for display.
    ///   - isOfHeads: whether only the beginning of each is fetched.
    init(names: [String], isOfHeads: Bool) {
        self.names = names
        self.isOfHeads = isOfHeads
    }

    /// Records the progress of a download; ignores other events.
    mutating func take(_ event: MediaCache.Event) {
        guard let key = event.key,
            case .downloadProgressed(let offset, let length) = event.kind
        else { return }
        // Lengths come from origins, so their sums may overflow.
        bytes &+= offset &- parts[key, default: Part()].offset
        parts[key] = Part(offset: offset, length: length)
    }

    /// Records that a request has ended.
    mutating func didEnd(fromOrigin: Int64, fromCache: Int64) {
        ended += 1
        bytesFromOrigin += fromOrigin
        bytesFromCache += fromCache
    }

    /// The values of the line.
    var shown: (name: String, bytes: Int64, total: Int64?) { (name, bytes, total) }

    /// The subject of the line: a name, or how many of several requests have ended.
    var name: String {
        guard names.count != 1 else { return names[0] }
        return "\(ended) of \(names.count) URLs"
    }

    /// The number of all body bytes, once known.
    var total: Int64? {
        guard !isOfHeads, parts.count == names.count else { return nil }
        var total: Int64 = 0
        for part in parts.values {
            guard let length = part.length else { return nil }
            let (sum, overflow) = total.addingReportingOverflow(length)
            guard !overflow else { return nil }
            total = sum
        }
        return total
    }

    /// The summary; nil if nothing was fetched or stored.
    var conclusion: String? {
        guard ended > 0 else { return nil }
        let what = ended == 1 ? "1 URL" : "\(ended) URLs"
        let stored =
            bytesFromCache > 0 ? ", \(ProgressLine.size(bytesFromCache)) stored already" : ""
        return "\(what) stored: \(ProgressLine.size(bytesFromOrigin)) from the network\(stored)"
    }
}
