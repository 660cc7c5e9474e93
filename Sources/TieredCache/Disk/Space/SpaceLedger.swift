/// Keeps the byte limit (invariant 4): what is allocated, and what was promised to writes under
/// way.
///
/// Arithmetic alone; it knows no file.
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
    /// What ``bytes`` and ``reserved`` may become at most, as LOCK says; `nil` where it says
    /// nothing.
    private(set) var claim: Int64?
    /// The part of ``bytes`` that is charged for directories that were not read yet.
    private(set) var unread: Int64 = 0
    /// The part of ``bytes`` that is set aside in `quarantine`.
    private(set) var quarantined: Int64 = 0
    /// Whether more is being evicted than a write waits for.
    private(set) var isClearing = false
    /// Lookups per directory that may have a file open which is being removed, and what such files
    /// were charged with: it is free when those lookups have ended.
    private var openings = [Int](repeating: 0, count: 256)
    private var pending = [Int64](repeating: 0, count: 256)
    /// Until when, and for how many bytes, the volume need not be asked for its room.
    private var roomCheckedUntil: Int64 = .min
    private var roomLeft: Int64 = 0

    /// The account of a directory of which nothing is known but this.
    ///
    /// - Parameters:
    ///   - limit: the most that may be allocated.
    ///   - fixed: what is no entry, what is set aside included.
    ///   - quarantined: what is set aside.
    ///   - claim: what LOCK says.
    init(limit: Int64, fixed: Int64 = 0, quarantined: Int64 = 0, claim: Int64? = nil) {
        self.limit = limit
        self.quarantined = quarantined
        self.claim = claim
        unread = claim ?? 0
        bytes = fixed + unread
    }

    // MARK: The limit

    /// Eviction starts above this.
    ///
    /// In two parts: `limit * 95` may overflow. The fractions are those of Chromium's disk cache.
    var highWatermark: Int64 { limit / 100 * 95 + limit % 100 * 95 / 100 }
    /// Eviction stops at or below this.
    var lowWatermark: Int64 { limit / 100 * 90 + limit % 100 * 90 / 100 }

    private var total: Int64 { bytes + reserved }

    /// Decides about bytes to be written.
    ///
    /// - Parameters:
    ///   - count: the bytes.
    ///   - isLastTry: nothing more can be evicted, so that only the limit itself counts.
    /// - Returns: whether they are reserved, and if not, why.
    mutating func admit(_ count: Int64, isLastTry: Bool) -> Admission {
        guard count <= limit else { return .tooLarge }
        let wanted = total + count
        guard wanted > (isLastTry ? limit : highWatermark) else {
            reserved += count
            return .granted
        }
        return .needsRoom(max(wanted - lowWatermark, 1))
    }

    /// How many bytes must go before eviction stops, if `count` more are to come; 0 if it need not
    /// begin.
    func excess(with count: Int64) -> Int64 {
        let wanted = total + count
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
    mutating func charge(_ delta: Int64) {
        bytes += delta
    }

    /// Books what came into `quarantine`, or with a negative number what left it.
    mutating func chargeQuarantined(_ delta: Int64) {
        quarantined += delta
        charge(delta)
    }

    /// Says that more than a batch is about to be evicted.
    ///
    /// - Returns: false if they are already; ``endClearing()`` has to follow otherwise.
    mutating func beginClearing() -> Bool {
        defer { isClearing = true }
        return !isClearing
    }

    mutating func endClearing() {
        isClearing = false
    }

    // MARK: Removed, and open

    /// What was removed and is allocated until lookups have ended.
    var pendingRelease: Int64 { pending.reduce(0, +) }

    /// Says that a file of a directory may be opened without the lock of its name.
    mutating func beginOpening(in shard: Int) {
        openings[shard] += 1
    }

    /// The file is closed, or belongs to an entry that all lookups find.
    mutating func endOpening(in shard: Int) {
        openings[shard] -= 1
        guard openings[shard] == 0 else { return }
        charge(-pending[shard])
        pending[shard] = 0
    }

    /// Books that files were removed; they take room as long as a lookup has them open.
    mutating func free(_ count: Int64, in shard: Int) {
        if count > 0, openings[shard] > 0 {
            pending[shard] += count
        } else {
            charge(-count)
        }
    }

    // MARK: What is not known yet

    /// A directory was read: what is in it is part of what was charged for those not read.
    mutating func didRead(_ count: Int64) {
        unread -= count
        guard unread < 0 else { return }
        // More than was claimed, or nothing was: a file system that forgets may bring it back.
        charge(-unread)
        unread = 0
    }

    /// All directories were read: nothing is charged for others any more.
    mutating func didReadAll() {
        charge(-unread)
        unread = 0
    }

    // MARK: The claim

    private var claimStep: Int64 { max(limit / 64, 4096) }

    /// With some room above what is there, but for the limit: nothing may exceed that.
    var wantedClaim: Int64 {
        max(total, min((total / claimStep + 1) * claimStep, limit))
    }

    /// Says whether a claim has to be written before anything else is.
    ///
    /// - Parameter isWorthIt: whether one is wanted where there is none.
    /// - Returns: whether it has to.
    func lacksClaim(isWorthIt: Bool) -> Bool {
        guard let claim else { return isWorthIt }
        return total > claim
    }

    /// LOCK says so by now.
    mutating func didClaim(_ count: Int64) {
        claim = count
    }

    /// What to lower the claim to, once all directories were read; `nil` if that is not worth it.
    var excessiveClaim: Int64? {
        guard let claim, claim - wantedClaim >= 2 * claimStep else { return nil }
        return wantedClaim
    }

    // MARK: The volume

    /// Takes bytes from what the volume was last seen to have to spare.
    ///
    /// - Returns: false if it has to be asked again.
    mutating func takeCheckedRoom(_ count: Int64, at now: Int64) -> Bool {
        guard now < roomCheckedUntil, roomLeft >= count else { return false }
        roomLeft -= count
        return true
    }

    /// Notes what the volume has to spare: good for 100 ms, or until a quarter of it was written.
    mutating func didCheckVolume(_ room: Int64, at now: Int64) {
        roomCheckedUntil = room >= 0 ? now + 100_000_000 : .min
        roomLeft = max(room, 0) / 4
    }

    /// What was known of the volume's room is wrong.
    mutating func forgetVolume() {
        roomCheckedUntil = .min
    }
}
