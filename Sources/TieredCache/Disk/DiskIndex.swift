/// What is in memory about the files of the disk tier: a hint (invariant 6), about 100 bytes per
/// entry.
///
/// Three queues in order of use: entries prefetched and never used, all others, and pinned ones,
/// which are never evicted. A slab with links by number: no object per entry.
struct DiskIndex: Sendable {
    enum Queue: UInt8, Sendable, CaseIterable {
        case prefetched
        case used
        case pinned
    }

    struct Slot: Sendable {
        var name: EntryName
        var generation: UInt64
        /// What the record file and the body file are allocated.
        var recordBytes: Int64
        var bodyBytes: Int64
        /// Whether there is a body file; it may be allocated nothing.
        var hasBody: Bool
        /// Seconds since 1970.
        var lastUse: UInt32
        var queue: Queue
        /// The state of the body's file when all of it was verified; 0 = it was not.
        ///
        /// Lets an entry whose descriptor was closed be read again without hashing it again.
        var verification: UInt64 = 0
        fileprivate var older: Int32 = -1
        fileprivate var newer: Int32 = -1

        init(
            name: EntryName,
            generation: UInt64,
            recordBytes: Int64,
            bodyBytes: Int64,
            hasBody: Bool,
            lastUse: UInt32,
            queue: Queue
        ) {
            self.name = name
            self.generation = generation
            self.recordBytes = recordBytes
            self.bodyBytes = bodyBytes
            self.hasBody = hasBody
            self.lastUse = lastUse
            self.queue = queue
        }

        var bytes: Int64 { recordBytes + bodyBytes }
    }

    private struct Ends {
        var oldest: Int32 = -1
        var newest: Int32 = -1
    }

    private var slots: [Slot] = []
    private var free: [Int32] = []
    private var numbers: [EntryName: Int32] = [:]
    private var ends = [Ends](repeating: Ends(), count: Queue.allCases.count)

    /// The number of entries.
    var count: Int { numbers.count }

    /// What is known of a name.
    subscript(name: EntryName) -> Slot? {
        numbers[name].map { slots[Int($0)] }
    }

    /// Every slot, in no order.
    var all: [Slot] { numbers.values.map { slots[Int($0)] } }

    /// Adds an entry as the one used last, or replaces what is known of the name.
    ///
    /// - Returns: what was known before.
    @discardableResult
    mutating func insert(_ slot: Slot) -> Slot? {
        let old = remove(slot.name)
        let number: Int32
        if let reused = free.popLast() {
            number = reused
            slots[Int(number)] = slot
        } else {
            number = Int32(slots.count)
            slots.append(slot)
        }
        numbers[slot.name] = number
        link(number)
        return old
    }

    /// Forgets an entry.
    @discardableResult
    mutating func remove(_ name: EntryName) -> Slot? {
        guard let number = numbers.removeValue(forKey: name) else { return nil }
        unlink(number)
        free.append(number)
        return slots[Int(number)]
    }

    /// Makes an entry the one used last; what was prefetched counts as used from now on.
    mutating func touch(_ name: EntryName, at seconds: UInt32) {
        guard let number = numbers[name] else { return }
        unlink(number)
        slots[Int(number)].lastUse = seconds
        if slots[Int(number)].queue == .prefetched {
            slots[Int(number)].queue = .used
        }
        link(number)
    }

    /// Moves an entry to the newest end of a queue.
    mutating func move(_ name: EntryName, to queue: Queue) {
        guard let number = numbers[name] else { return }
        unlink(number)
        slots[Int(number)].queue = queue
        link(number)
    }

    /// Changes what is known, order and queue excepted.
    ///
    /// - Returns: by how many bytes the entry grew.
    @discardableResult
    mutating func update(
        _ name: EntryName,
        generation: UInt64,
        _ change: (inout Slot) -> Void
    ) -> Int64? {
        guard let number = numbers[name], slots[Int(number)].generation == generation else {
            return nil
        }
        let before = slots[Int(number)].bytes
        change(&slots[Int(number)])
        return slots[Int(number)].bytes - before
    }

    /// The entries that would be evicted first, pinned ones left out.
    func oldest(_ maximum: Int, where isWanted: (Slot) -> Bool) -> [Slot] {
        var result: [Slot] = []
        for queue in [Queue.prefetched, .used] {
            var number = ends[Int(queue.rawValue)].oldest
            while number >= 0, result.count < maximum {
                let slot = slots[Int(number)]
                if isWanted(slot) { result.append(slot) }
                number = slot.newer
            }
        }
        return result
    }

    private mutating func link(_ number: Int32) {
        let queue = Int(slots[Int(number)].queue.rawValue)
        let newest = ends[queue].newest
        slots[Int(number)].older = newest
        slots[Int(number)].newer = -1
        ends[queue].newest = number
        if newest >= 0 {
            slots[Int(newest)].newer = number
        } else {
            ends[queue].oldest = number
        }
    }

    private mutating func unlink(_ number: Int32) {
        let slot = slots[Int(number)]
        let queue = Int(slot.queue.rawValue)
        if slot.older >= 0 {
            slots[Int(slot.older)].newer = slot.newer
        } else {
            ends[queue].oldest = slot.newer
        }
        if slot.newer >= 0 {
            slots[Int(slot.newer)].older = slot.older
        } else {
            ends[queue].newest = slot.older
        }
    }
}
