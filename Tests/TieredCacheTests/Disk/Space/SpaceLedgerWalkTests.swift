import Testing

@_spi(Benchmarks) @testable import TieredCache

/// The arithmetic of room under random operations, beside a model that keeps each file by itself.
@Suite("Disk: space ledger, random operations", .timeLimit(.minutes(10)))
struct SpaceLedgerWalkTests {
    @Test(
        "what is charged is what there is, and it stays below limit and claim",
        arguments: 0..<100 as Range<UInt64>
    )
    func walk(seed: UInt64) throws {
        var walk = LedgerWalk(seed: seed)
        for step in 0..<500 {
            let complaint = walk.step() ?? walk.check()
            try #require(complaint == nil, "step \(step)")
        }
        try #require(walk.readAll() == nil)
        // With nothing under way any more, what is charged is what the files take.
        walk.endAll()
        #expect(walk.ledger.bytes == walk.allocated)
        #expect(walk.ledger.reserved == 0)
        #expect(walk.ledger.pendingRelease == 0)
    }

    @Test("the walks come to every answer and every state")
    func coverage() {
        var met: Set<LedgerWalk.Event> = []
        for seed in 0..<100 as Range<UInt64> {
            var walk = LedgerWalk(seed: seed)
            for _ in 0..<500 { _ = walk.step() }
            met.formUnion(walk.met)
        }
        #expect(met == Set(LedgerWalk.Event.allCases))
    }

    @Test(
        "the volume is asked again after 100 ms, a quarter of its room, or a surprise",
        arguments: 0..<50 as Range<UInt64>
    )
    func volume(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var ledger = SpaceLedger(limit: 1 << 40)
        var (now, checked, left): (Int64, Int64, Int64) = (0, .min, 0)
        for step in 0..<500 {
            now += Int64.random(in: 0...40_000_000, using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                let room = Int64.random(in: -100...10_000, using: &random)
                ledger.didCheckVolume(room, at: now)
                (checked, left) = room < 0 ? (.min, 0) : (now, room / 4)
            case 1:
                ledger.forgetVolume()
                checked = .min
            default:
                let count = Int64.random(in: 0...1000, using: &random)
                let isFree = checked > .min && now - checked < 100_000_000 && count <= left
                if isFree { left -= count }
                try #require(ledger.takeCheckedRoom(count, at: now) == isFree, "step \(step)")
            }
        }
    }
}

/// Random operations on a ledger and on its model.
struct LedgerWalk {
    enum Event: Hashable, CaseIterable {
        case granted, needsRoom, tooLarge
        case pending, claimed, lowered, moreThanClaimed
    }

    private struct File {
        var bytes: Int64
        var shard: Int
    }

    private(set) var ledger: SpaceLedger
    private(set) var met: Set<Event> = []
    private var random: SeededGenerator
    private let fixed: Int64
    private var files: [File] = []
    /// What was removed while lookups were under way in its directory.
    private var removed: [File] = []
    private var lookups: [Int] = []
    private var writes: [Int64] = []
    private var quarantined: [Int64]
    /// What directories hold that were not read, and what is charged for them.
    private var unread: [Int64]
    private var chargedUnread: Int64

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        quarantined = seed % 3 == 0 ? [700] : []
        fixed = 8192
        unread = []
        for _ in 0..<20 { unread.append(Int64.random(in: 0...3000, using: &random)) }
        let claim: Int64? = seed % 4 == 0 ? nil : seed % 4 == 1 ? 60_000 : 10_000
        chargedUnread = claim ?? 0
        ledger = SpaceLedger(
            limit: 200_000,
            fixed: fixed + quarantined.reduce(0, +),
            quarantined: quarantined.reduce(0, +),
            claim: claim
        )
    }

    /// What the files take that the model has.
    var allocated: Int64 {
        fixed + quarantined.reduce(0, +) + files.reduce(0) { $0 + $1.bytes }
    }

    /// Compares the ledger with the model.
    ///
    /// - Returns: what is wrong.
    func check() -> String? {
        let pending = removed.reduce(0) { $0 + $1.bytes }
        let charged = allocated + pending + chargedUnread
        if ledger.bytes != charged { return "booked \(ledger.bytes), not \(charged)" }
        if ledger.pendingRelease != pending { return "pending \(ledger.pendingRelease)" }
        if ledger.reserved != writes.reduce(0, +) { return "reserved \(ledger.reserved)" }
        if ledger.quarantined != quarantined.reduce(0, +) { return "aside \(ledger.quarantined)" }
        if ledger.unread != chargedUnread { return "unread \(ledger.unread), not \(chargedUnread)" }
        return nil
    }

    /// - Returns: what is wrong.
    mutating func step() -> String? {
        let before = ledger.bytes + ledger.reserved
        switch Int.random(in: 0..<18, using: &random) {
        case 0..<5: if let complaint = beginWrite() { return complaint }
        case 5..<8: endWrite()
        case 8, 9: remove()
        case 10, 11: beginLookup()
        case 12, 13: endLookup()
        case 14: emptyQuarantine()
        case 15: ledger.limit = Int64.random(in: 1500...2500, using: &random) * 100
        case 16: if let complaint = lower() { return complaint }
        default:
            // These two may exceed the limit, and write nothing.
            if Bool.random(using: &random) { readDirectory() } else { quarantine() }
            return nil
        }
        let total = ledger.bytes + ledger.reserved
        return total <= max(before, ledger.limit) ? nil : "\(total) is beyond the limit"
    }

    private mutating func beginWrite() -> String? {
        let isLastTry = Bool.random(using: &random)
        let most = isLastTry ? ledger.limit : ledger.limit / 100 * 95
        let total = ledger.bytes + ledger.reserved
        let count =
            switch Int.random(in: 0..<20, using: &random) {
            case 0: ledger.limit + 1
            case 1...3: max(1, most - total + Int64.random(in: 0...1, using: &random))
            default: Int64.random(in: 1...20_000, using: &random)
            }
        switch ledger.admit(count, isLastTry: isLastTry) {
        case .granted:
            met.insert(.granted)
            writes.append(count)
            if total + count > most { return "\(count) granted above \(total)" }
            return claim()
        case .needsRoom(let missing):
            met.insert(.needsRoom)
            if total + count <= most { return "\(count) refused above \(total)" }
            let isExact = missing == total + count - ledger.limit / 100 * 90
            return isExact && missing == ledger.excess(with: count) ? nil : "\(missing) missing"
        case .tooLarge:
            met.insert(.tooLarge)
            return count > ledger.limit ? nil : "\(count) is not too large"
        }
    }

    /// As before each write: what is not claimed is claimed.
    private mutating func claim() -> String? {
        let total = ledger.bytes + ledger.reserved
        if ledger.lacksClaim(isWorthIt: true) {
            met.insert(.claimed)
            let claim = ledger.wantedClaim
            // A little more than is there, so that not every write raises it; never beyond the
            // limit.
            if claim > min(total + 4096, ledger.limit) { return "\(claim) claimed for \(total)" }
            ledger.didClaim(claim)
        }
        guard let claim = ledger.claim, claim >= total else { return "\(total) is not claimed" }
        return ledger.lacksClaim(isWorthIt: true) ? "a claim of \(claim) is not enough" : nil
    }

    /// As once all directories were read: a claim that is far too high is lowered.
    private mutating func lower() -> String? {
        guard let before = ledger.claim, let claim = ledger.excessiveClaim else { return nil }
        met.insert(.lowered)
        ledger.didClaim(claim)
        let total = ledger.bytes + ledger.reserved
        if claim >= before || claim < total { return "lowered from \(before) to \(claim)" }
        if claim > max(total, ledger.limit) { return "\(claim) is beyond the limit" }
        return ledger.excessiveClaim == nil ? nil : "a claim of \(claim) is lowered again"
    }

    private mutating func endWrite() {
        guard let count = random.take(from: &writes) else { return }
        let written = Int64.random(in: 0...count, using: &random)
        ledger.charge(written)
        ledger.release(count)
        files.append(File(bytes: written, shard: Int.random(in: 0..<4, using: &random)))
    }

    private mutating func remove() {
        guard let file = random.take(from: &files) else { return }
        ledger.free(file.bytes, in: file.shard)
        guard lookups.contains(file.shard) else { return }
        met.insert(.pending)
        removed.append(file)
    }

    private mutating func quarantine() {
        guard let file = random.take(from: &files) else { return }
        ledger.chargeQuarantined(file.bytes)
        quarantined.append(file.bytes)
        ledger.free(file.bytes, in: file.shard)
        if lookups.contains(file.shard) { removed.append(file) }
    }

    private mutating func emptyQuarantine() {
        ledger.chargeQuarantined(-quarantined.reduce(0, +))
        quarantined = []
    }

    private mutating func beginLookup() {
        let shard = Int.random(in: 0..<4, using: &random)
        ledger.beginOpening(in: shard)
        lookups.append(shard)
    }

    private mutating func endLookup() {
        guard let shard = random.take(from: &lookups) else { return }
        ledger.endOpening(in: shard)
        if !lookups.contains(shard) { removed.removeAll { $0.shard == shard } }
    }

    private mutating func readDirectory() {
        guard let bytes = unread.popLast() else { return }
        ledger.didRead(bytes)
        files.append(File(bytes: bytes, shard: Int.random(in: 0..<4, using: &random)))
        if bytes > chargedUnread { met.insert(.moreThanClaimed) }
        chargedUnread = max(0, chargedUnread - bytes)
    }

    /// Reads what was not read yet.
    ///
    /// - Returns: what is wrong.
    mutating func readAll() -> String? {
        while !unread.isEmpty {
            readDirectory()
            if let complaint = check() { return complaint }
        }
        ledger.didReadAll()
        chargedUnread = 0
        return check()
    }

    /// Ends what is under way.
    mutating func endAll() {
        while !writes.isEmpty { endWrite() }
        while !lookups.isEmpty { endLookup() }
    }
}

extension SeededGenerator {
    fileprivate mutating func take<Element>(from list: inout [Element]) -> Element? {
        guard !list.isEmpty else { return nil }
        return list.remove(at: Int.random(in: list.indices, using: &self))
    }
}
