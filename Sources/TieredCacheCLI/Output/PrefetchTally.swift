import TieredCache

/// What has come of several prefetches so far, for one line on a terminal.
///
/// Counts what playlists refer to as well, whose number nobody knows before they are read.
struct PrefetchTally {
    private struct Part {
        var offset: Int64 = 0
        var length: Int64?
    }

    private let names: [String]
    /// Whether heads are wanted, not all of each.
    private let isOfHeads: Bool
    private var parts: [CacheKey: Part] = [:]
    private var ended = 0
    private var bytesFromOrigin: Int64 = 0
    private var bytesFromCache: Int64 = 0
    /// Body bytes that have arrived, those included that were there.
    private(set) var bytes: Int64 = 0

    /// - Parameters:
    ///   - names: what is fetched, in the words for people.
    ///   - isOfHeads: whether only the beginning of each is wanted.
    init(names: [String], isOfHeads: Bool) {
        self.names = names
        self.isOfHeads = isOfHeads
    }

    /// Takes note of bytes that came; of other events none.
    mutating func take(_ event: MediaCache.Event) {
        guard let key = event.key,
            case .downloadProgressed(let offset, let length) = event.kind
        else { return }
        // Lengths are what origins say, so sums of them may not fit.
        bytes &+= offset &- parts[key, default: Part()].offset
        parts[key] = Part(offset: offset, length: length)
    }

    /// One of them has come to its end.
    mutating func didEnd(fromOrigin: Int64, fromCache: Int64) {
        ended += 1
        bytesFromOrigin += fromOrigin
        bytesFromCache += fromCache
    }

    /// What the line says.
    var shown: (name: String, bytes: Int64, total: Int64?) { (name, bytes, total) }

    /// What the line is about: a name, or how many of several are done.
    var name: String {
        guard names.count != 1 else { return names[0] }
        return "\(ended) of \(names.count) URLs"
    }

    /// All that will come, once that is known.
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

    /// What to say when all is over; nil if nothing was fetched or stored.
    var conclusion: String? {
        guard ended > 0 else { return nil }
        let what = ended == 1 ? "1 URL" : "\(ended) URLs"
        let stored =
            bytesFromCache > 0 ? ", \(ProgressLine.size(bytesFromCache)) stored already" : ""
        return "\(what) stored: \(ProgressLine.size(bytesFromOrigin)) from the network\(stored)"
    }
}
