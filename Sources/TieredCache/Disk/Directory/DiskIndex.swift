/// The index of the disk tier in memory: a hint (invariant 6), about 75 bytes per entry.
///
/// Four queues in order of use: entries prefetched and never used, heads of huge entries, all
/// others, and pinned ones, which are never evicted. A slab with links by number: no object per
/// entry.
struct DiskIndex: Sendable {
    enum Queue: UInt8, Sendable, CaseIterable {
        case prefetched
        case used
        case pinned
        /// The head of a huge entry that lost its tail.
        case heads
    }

    struct Slot: Sendable {
        var name: EntryName
        var generation: UInt64
        /// The bytes allocated for the body file.
        var bodyBytes: Int64
        /// Nanoseconds since 1970.
        var lastUse: UInt64
        /// The state of the body's file when all of it was verified; 0 = it was not.
        ///
        /// With it an entry with a closed descriptor can be read without hashing it again.
        var verification: UInt64 = 0
        /// -1 at the end; -2 while the entry has no place in the order; -3 once the number is free.
        fileprivate var older: Int32 = -1
        fileprivate var newer: Int32 = -1
        /// In units of 512 bytes, as the kernel counts: keeps a slot at 64 bytes.
        private var recordUnits: UInt32
        var queue: Queue
        /// Whether there is a body file; it may be allocated nothing.
        var hasBody: Bool
        /// Whether only the files are known, because the record cannot be read.
        var isGuessed = false
        /// Whether more than one body has the name, as a crash leaves it, and the bytes are of all
        /// of them.
        var hasSeveralBodies = false

        init(
            name: EntryName,
            generation: UInt64,
            recordBytes: Int64,
            bodyBytes: Int64,
            hasBody: Bool,
            lastUse: UInt64,
            queue: Queue
        ) {
            self.name = name
            self.generation = generation
            recordUnits = UInt32(clamping: recordBytes / 512)
            self.bodyBytes = bodyBytes
            self.hasBody = hasBody
            self.lastUse = lastUse
            self.queue = queue
        }

        /// The bytes allocated for the record file.
        var recordBytes: Int64 {
            get { Int64(recordUnits) * 512 }
            set { recordUnits = UInt32(clamping: newValue / 512) }
        }

        var bytes: Int64 { recordBytes + bodyBytes }

        /// Moves a prefetched entry, or a head, to the queue of used entries.
        mutating func use(at time: UInt64) {
            lastUse = time
            if queue == .prefetched || queue == .heads { queue = .used }
        }
    }

    private struct Ends {
        var oldest: Int32 = -1
        var newest: Int32 = -1
        var bytes: Int64 = 0
    }

    private var slots = SlotSlab()
    private var names: NameTable
    private var ends = [Ends](repeating: Ends(), count: Queue.allCases.count)

    /// - Parameter seed: decides the order in which slots are visited.
    init(seed: UInt64 = .random(in: .min ... .max)) {
        names = NameTable(seed: seed)
    }

    /// The number of entries.
    var count: Int { names.count }

    /// The slot of a name.
    subscript(name: EntryName) -> Slot? {
        names.number(of: name, in: slots).map { slots[$0] }
    }

    /// The bytes allocated for the entries of a queue.
    func bytes(in queue: Queue) -> Int64 { ends[Int(queue.rawValue)].bytes }

    /// Every slot, in no order.
    var all: [Slot] {
        var result: [Slot] = []
        result.reserveCapacity(count)
        visit { result.append($0) }
        return result
    }

    /// Visits every slot, in no order.
    func visit(_ body: (Slot) -> Void) {
        names.visit { body(slots[$0]) }
    }

    /// The numbers of all slots, by directory.
    var numbersByShard: [[Int32]] {
        var result = [[Int32]](repeating: [], count: 256)
        names.visit { result[slots[$0].name.shardNumber].append($0) }
        return result
    }

    /// The slot with a number.
    func slot(_ number: Int32) -> Slot { slots[number] }

    // MARK: Building

    /// Reserves memory for `count` entries, so that no insertion has to grow the table.
    mutating func reserve(_ count: Int) {
        names.reserve(count, in: slots)
    }

    /// Adds an entry without a place in the order of use: it is not among the oldest until
    /// ``placeAsOlder(_:)`` gives it one, or a use does.
    mutating func append(_ slot: Slot) {
        if names.number(of: slot.name, in: slots) != nil { return }
        var slot = slot
        slot.older = -2
        names.insert(slots.add(slot), in: slots)
    }

    /// An entry without a place.
    struct Unplaced: Sendable {
        fileprivate var number: Int32
        fileprivate var lastUse: UInt64
    }

    /// Those of the entries without a place whose numbers lie in `range`.
    ///
    /// - Returns: `nil` behind the last number.
    func unplaced(in range: Range<Int32>) -> [Unplaced]? {
        guard range.lowerBound < slots.end else { return nil }
        return (range.lowerBound..<min(range.upperBound, slots.end)).compactMap { number in
            slots[number].older == -2
                ? Unplaced(number: number, lastUse: slots[number].lastUse) : nil
        }
    }

    /// The order in which ``placeAsOlder(_:)`` is to be called: the last used first.
    static func sort(_ entries: inout [Unplaced]) {
        entries.sort { $0.lastUse > $1.lastUse }
    }

    /// Gives entries a place before all others of their queues, those apart that got one meanwhile.
    mutating func placeAsOlder(_ entries: some Sequence<Unplaced>) {
        for entry in entries where slots[entry.number].older == -2 {
            link(entry.number, asOldest: true)
        }
    }

    // MARK: Changing

    /// Adds an entry as the one used last, or replaces the slot of its name.
    ///
    /// - Returns: the slot before.
    @discardableResult
    mutating func insert(_ slot: Slot) -> Slot? {
        let old = remove(slot.name)
        let number = slots.add(slot)
        names.insert(number, in: slots)
        link(number)
        return old
    }

    /// Forgets an entry.
    @discardableResult
    mutating func remove(_ name: EntryName) -> Slot? {
        guard let number = names.remove(name, in: slots) else { return nil }
        unlink(number)
        slots.remove(number)
        // After `remove`, which leaves the slot as it was: `placeAsOlder` may still name the
        // number.
        slots[number].older = -3
        return slots[number]
    }

    /// Makes an entry the one used last.
    mutating func touch(_ name: EntryName, at time: UInt64) {
        relink(name) { $0.use(at: time) }
    }

    /// Enters what the record says of an entry of which only the files were known; it becomes the
    /// one used last in its queue, since it was looked up.
    ///
    /// Not where files may be charged that are not the entry's: those would be taken for free when
    /// it goes.
    mutating func learn(_ known: Slot) {
        guard let guessed = self[known.name], guessed.isGuessed, !guessed.hasSeveralBodies,
            !guessed.hasBody || known.hasBody && known.generation == guessed.generation
        else { return }
        relink(known.name) { slot in
            slot.isGuessed = false
            slot.generation = known.generation
            slot.hasBody = known.hasBody
            slot.lastUse = known.lastUse
            slot.queue = known.queue
        }
    }

    /// Moves an entry to the newest end of a queue.
    mutating func move(_ name: EntryName, to queue: Queue) {
        relink(name) { $0.queue = queue }
    }

    /// Changes an entry, and makes it the newest of the queue that it is in then.
    private mutating func relink(_ name: EntryName, change: (inout Slot) -> Void) {
        guard let number = names.number(of: name, in: slots) else { return }
        unlink(number)
        change(&slots[number])
        link(number)
    }

    /// Changes a slot, except its order and queue.
    ///
    /// - Returns: by how many bytes the entry grew.
    @discardableResult
    mutating func update(
        _ name: EntryName,
        generation: UInt64,
        change: (inout Slot) -> Void
    ) -> Int64? {
        guard let number = names.number(of: name, in: slots), slots[number].generation == generation
        else {
            return nil
        }
        let before = slots[number].bytes
        change(&slots[number])
        let growth = slots[number].bytes - before
        // An entry without a place is in no queue, so its bytes are in no sum yet.
        if slots[number].older >= -1 {
            ends[Int(slots[number].queue.rawValue)].bytes += growth
        }
        return growth
    }

    /// The entries that would be evicted first, pinned ones left out.
    func oldest(
        _ maximum: Int,
        headsFirst: Bool = false,
        where isWanted: (Slot) -> Bool
    ) -> [Slot] {
        var result: [Slot] = []
        let order: [Queue] = headsFirst ? [.heads] : [.prefetched, .used, .heads]
        for queue in order {
            var number = ends[Int(queue.rawValue)].oldest
            while number >= 0, result.count < maximum {
                let slot = slots[number]
                if isWanted(slot) { result.append(slot) }
                number = slot.newer
            }
        }
        return result
    }

    private mutating func link(_ number: Int32, asOldest: Bool = false) {
        let queue = Int(slots[number].queue.rawValue)
        let older = asOldest ? -1 : ends[queue].newest
        let newer = asOldest ? ends[queue].oldest : -1
        slots[number].older = older
        slots[number].newer = newer
        ends[queue].bytes += slots[number].bytes
        join(older, before: number, in: queue)
        join(number, before: newer, in: queue)
    }

    /// Makes two entries of a queue neighbours; -1 is the end of the queue.
    private mutating func join(_ older: Int32, before newer: Int32, in queue: Int) {
        if older >= 0 { slots[older].newer = newer } else { ends[queue].oldest = newer }
        if newer >= 0 { slots[newer].older = older } else { ends[queue].newest = older }
    }

    private mutating func unlink(_ number: Int32) {
        let slot = slots[number]
        guard slot.older >= -1 else { return }
        let queue = Int(slot.queue.rawValue)
        ends[queue].bytes -= slot.bytes
        join(slot.older, before: slot.newer, in: queue)
    }
}
