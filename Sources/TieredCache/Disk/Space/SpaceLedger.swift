/// Keeps the byte limit (invariant 4): what is allocated, and what was promised to writes under way.
struct SpaceLedger: Sendable {
    enum Admission: Equatable {
        /// The bytes are reserved.
        case granted
        /// At least so many bytes must go first.
        case needsRoom(Int64)
        /// They would not fit into an empty cache.
        case tooLarge
    }

    /// The most that may be allocated, in bytes.
    var limit: Int64
    /// What files are allocated, those included that are unlinked and still open.
    private(set) var bytes: Int64 = 0
    /// What writes under way may still add.
    private(set) var reserved: Int64 = 0

    init(limit: Int64) {
        self.limit = limit
    }

    /// Eviction starts above this.
    var highWatermark: Int64 { limit / 100 * 95 + limit % 100 * 95 / 100 }
    /// Eviction stops at or below this.
    var lowWatermark: Int64 { limit / 100 * 90 + limit % 100 * 90 / 100 }

    /// Decides about bytes to be written.
    ///
    /// - Parameters:
    ///   - count: the bytes.
    ///   - isLastTry: nothing more can be evicted, so that only the limit itself counts.
    /// - Returns: whether they are reserved, and if not, why.
    mutating func admit(_ count: Int64, isLastTry: Bool) -> Admission {
        guard count <= limit else { return .tooLarge }
        let wanted = bytes + reserved + count
        guard wanted > (isLastTry ? limit : highWatermark) else {
            reserved += count
            return .granted
        }
        return .needsRoom(max(wanted - lowWatermark, 1))
    }

    /// How many bytes must go before eviction stops, if `count` more are to come; 0 if it need not begin.
    func excess(with count: Int64) -> Int64 {
        let wanted = bytes + reserved + count
        return wanted > highWatermark ? wanted - lowWatermark : 0
    }

    /// Ends a reservation.
    mutating func release(_ count: Int64) {
        reserved -= count
    }

    /// Reserves room for what grows now and then, whatever else there is; negative gives some back.
    mutating func setAside(_ count: Int64) {
        reserved += count
    }

    /// Books what files grew or shrank by.
    mutating func book(_ delta: Int64) {
        bytes += delta
    }
}
