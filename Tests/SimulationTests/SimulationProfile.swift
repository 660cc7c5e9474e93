#if os(Linux)
/// What a simulation has of all that may happen; a seed takes about half of it.
///
/// Runs that do everything find less: what ends an entry's life early hides what befalls old ones.
struct SimulationProfile: Sendable {
    var clients = 3
    var operations = 60
    var urls = 4
    var lengths = [700, 5000, 65_536, 65_537, 200_000, 400_000]
    /// The first URL is a film of so many bytes, which comes in small chunks; nil for none.
    var film: Int?
    /// What the first clients are there for; the others are users.
    var roles: [SimulationPlan.Role] = []
    var lifetime = 60
    /// How many bytes the origin sends at once.
    var chunks = [4096, 16_384, 65_536, 300_000]
    /// Of how many chunks one comes a moment after the one before.
    var chunksPerDelay = 4
    var diskLimit: Int64 = 1 << 20
    var memoryLimit: Int64 = 256 << 10
    var maximumOpenEntries = 4
    var maximumHeadMemory = 4 << 20
    var inlineLimit = 65_536
    var hugeBody: Int64 = 128 << 10
    var headLength: Int64 = 64 << 10
    var minimumSnapshotEntries = 4096
    /// How many different locks the names fall upon; nil for as many as MD5 spreads them over.
    var lockGroups: UInt64?
    var warmth = 70
    /// About how many calls of the disk lie between two that take long.
    var freezeEvery = 100
    /// What there is much of.
    var focus = Focus.anything
    /// How often clients do what, in the order of ``SimulationPlan/Kind``.
    var weights = SimulationPlan.Kind.allCases.map { _ in 1 }
    /// All representations have entity tags.
    var tags = true
    var redirects = false
    var changes = false
    var noStore = false
    var faults = false
    var cuts = false
    var ignoresRanges = false
    /// Of how many ranges one is ignored then.
    var rangesPerIgnored = 3
    var pins = false
    var removes = false
    var limitChanges = false
    var trims = false
    var verifies = false
    var restarts = false
    var crashes = false
    var diskFaults = false
    var damage = false

    /// Whether nothing happens for which an origin that is asked again may not answer.
    var isOriginSteady: Bool { !changes && !redirects && !noStore && !faults && !cuts }
    /// Whether all that is on disk must be as it was written.
    var isDiskSound: Bool { !crashes && !diskFaults && !damage }

    func isFilm(_ url: Int) -> Bool { film != nil && url == 0 }

    /// How long a body of a URL is.
    func length(of url: Int, _ die: inout Die) -> Int {
        if let film, url == 0 { return film }
        return die.pick(lengths)
    }

    init() {}

    init(die: inout Die) {
        func some() -> Bool { die.chance(1, of: 2) }
        clients = 2 + die.roll(4)
        operations = 20 + die.roll(60)
        urls = 2 + die.roll(8)
        lifetime = die.pick([1, 60, 3600])
        for kind in SimulationPlan.Kind.allCases {
            weights[kind.rawValue] = kind.usualWeight * die.pick([1, 2, 4])
        }
        diskLimit = die.pick([400 << 10, 700 << 10, 1 << 20, 4 << 20])
        memoryLimit = die.pick([1 << 10, 64 << 10, 1 << 20])
        maximumOpenEntries = die.pick([1, 2, 256])
        maximumHeadMemory = die.pick([0, 2000, 4 << 20])
        inlineLimit = die.pick([0, 4096, 65_536])
        hugeBody = die.pick([128 << 10, 128 << 10, 16 << 20])
        minimumSnapshotEntries = die.pick([1, 4096])
        lockGroups = die.pick([nil, 1, 2])
        warmth = die.pick([0, 70, 100])
        tags = some()
        (redirects, changes, noStore) = (some(), some(), die.chance(1, of: 6))
        (faults, cuts, ignoresRanges) = (die.chance(1, of: 4), some(), die.chance(1, of: 4))
        (pins, removes, limitChanges) = (some(), some(), some())
        (trims, verifies, restarts) = (some(), some(), die.chance(1, of: 3))
        crashes = die.chance(1, of: 3)
        diskFaults = die.chance(1, of: 5)
        damage = die.chance(1, of: 3)
        freezeEvery = die.pick([20, 100, 500])
        focus = die.pick(Focus.allCases + [.anything, .anything])
        turnTo(focus)
    }

    /// What rare events need that meet only where there is much of both.
    enum Focus: CaseIterable {
        /// Anything may happen.
        case anything
        /// Bodies of several regions, which give up cold blocks while they are filled and read.
        case holes
        /// Repairs while entries are replaced.
        case repairs
        /// Many entries in few places in memory, used again and again.
        case crowds
        /// Bodies that are cut from outside, and fetched again in parts.
        case wounds
    }

    mutating func turnTo(_ focus: Focus) {
        switch focus {
        case .anything:
            return
        case .holes:
            (clients, urls, lifetime, tags) = (6, 4, 3600, true)
            // While a large write makes room, a small one passes stored blocks and comes to what
            // goes.
            (film, roles) = (3_300_000, [.viewer, .viewer, .viewer, .bringer, .bringer])
            (lengths, chunks) = ([700_000], [700_000])
            // A fill that passes stored blocks calls no disk: only between chunks can others go
            // first.
            chunksPerDelay = 1
            (diskLimit, hugeBody, headLength) = (3_500_000, 1 << 20, 64 << 10)
            (ignoresRanges, rangesPerIgnored) = (true, 2)
            (freezeEvery, memoryLimit) = (20, 1 << 10)
            (damage, diskFaults, crashes, noStore) = (false, false, false, false)
            (removes, limitChanges, trims, operations) = (false, false, false, 80)
        case .repairs:
            (urls, freezeEvery, lifetime, memoryLimit) = (2, 20, 3600, 1 << 10)
            (roles, maximumOpenEntries) = ([.mender, .mender, .changer], 1)
            // What a repair has done to a record shows where that is read again.
            (maximumHeadMemory, limitChanges) = (0, false)
            (chunks, cuts, faults) = ([300_000], false, false)
            // One in a file of its own and one in its record take turns.
            lengths = [60_000, 400_000]
            inlineLimit = 65_536
            (verifies, changes, noStore) = (true, true, false)
            (pins, restarts) = (true, true)
            (clients, operations, diskLimit) = (5, 60, 4 << 20)
            (crashes, diskFaults, damage) = (false, false, false)
            weights[SimulationPlan.Kind.maintain.rawValue] = 30
            weights[SimulationPlan.Kind.change.rawValue] = 16
        case .wounds:
            (urls, lifetime, memoryLimit, inlineLimit) = (2, 3600, 1 << 10, 4096)
            lengths = [200_000, 400_000, 400_000]
            (damage, diskFaults, crashes, changes, noStore) = (true, false, false, false, false)
            (verifies, trims, limitChanges, removes) = (false, false, false, false)
            diskLimit = 4 << 20
            weights[SimulationPlan.Kind.storageError.rawValue] = 8
        case .crowds:
            (urls, maximumOpenEntries, maximumHeadMemory) = (9, 1, 0)
            lockGroups = 2
            weights[SimulationPlan.Kind.pause.rawValue] = 8
        }
    }
}
#endif
