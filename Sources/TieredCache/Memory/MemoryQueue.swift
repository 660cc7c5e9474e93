/// The order in which the entries of a shard leave: exact, and free of charge for a hit.
///
/// A hit only stores a stamp, a number that grows with time, in the entry. The queue has a record
/// of each entry with the stamp that it had when the record was made, which no later stamp of it is
/// below. So the record with the lowest stamp names the oldest entry if that entry still has this
/// stamp; if it was hit since, it gets a record with its present stamp, and the next lowest is
/// looked at.
///
/// Records of insertions come in order and wait in a ring; only entries that were found to have
/// been hit move to the heap. An entry that was never hit, most of a cache that streams through, is
/// therefore evicted at the cost of reading one record. The rest pays one heap operation for all
/// the hits since its last one, where a linked list would write four neighbours at every hit.
///
/// The record of an entry that was removed stays behind and is known by its ticket, which no entry
/// has any more.
@usableFromInline
struct MemoryQueue {
    @usableFromInline
    struct Record {
        @usableFromInline let stamp: UInt64
        @usableFromInline let entry: UInt32
        /// Which use of the entry's number this is; never 0.
        @usableFromInline let ticket: UInt32

        @inlinable
        init(stamp: UInt64, entry: UInt32, ticket: UInt32) {
            self.stamp = stamp
            self.entry = entry
            self.ticket = ticket
        }
    }

    // Bare buffers: an array in a place that other modules see is checked for uniqueness and
    // bounds at each step.
    @usableFromInline var ring: UnsafeMutablePointer<Record>
    @usableFromInline var mask: Int
    /// The ring's records are those at `first..<end`, each modulo the capacity.
    @usableFromInline var first = 0
    @usableFromInline var end = 0
    @usableFromInline var lastTicket: UInt32 = 0
    /// A binary heap; the lowest stamp is at 0.
    @usableFromInline var heap: UnsafeMutablePointer<Record>
    @usableFromInline var heapCount = 0
    private var heapCapacity = 16

    @usableFromInline
    init() {
        ring = .allocate(capacity: 16)
        mask = 15
        heap = .allocate(capacity: heapCapacity)
    }

    /// Gives the memory back.
    func deallocate() {
        ring.deallocate()
        heap.deallocate()
    }

    /// Whether the next ``append(stamp:entry:)`` needs ``makeRoom(where:)`` before it.
    @inlinable
    var isFull: Bool { end &- first > mask }

    /// Adds the record of a new entry, younger than all; returns its ticket.
    @inlinable
    @inline(__always)
    mutating func append(stamp: UInt64, entry: Int) -> UInt32 {
        // Never 0, which is the ticket of no entry.
        lastTicket = lastTicket == .max ? 1 : lastTicket &+ 1
        let record = Record(
            stamp: stamp,
            entry: UInt32(truncatingIfNeeded: entry),
            ticket: lastTicket
        )
        (ring + (end & mask)).initialize(to: record)
        end &+= 1
        return lastTicket
    }

    /// Whether the lowest record is in the heap.
    @inlinable
    var isHeapFirst: Bool {
        heapCount != 0 && (first == end || heap[0].stamp < ring[first & mask].stamp)
    }

    /// A stamp that no entry is older than; `.max` if there are no records.
    @inlinable
    var lowestStamp: UInt64 {
        let bound = first == end ? UInt64.max : ring[first & mask].stamp
        return heapCount == 0 ? bound : min(bound, heap[0].stamp)
    }

    /// Drops the records that are not `live`, and gets more memory if that was not half of them.
    @usableFromInline
    @inline(never)
    mutating func makeRoom(where isLive: (Record) -> Bool) {
        let old = (ring: ring, mask: mask, first: first, end: end)
        let live = (first..<end).reduce(0) { $0 + (isLive(ring[$1 & mask]) ? 1 : 0) }
        if live > mask / 2 { mask = mask * 2 + 1 }
        ring = .allocate(capacity: mask + 1)
        (first, end) = (0, 0)
        for place in old.first..<old.end where isLive(old.ring[place & old.mask]) {
            (ring + end).initialize(to: old.ring[place & old.mask])
            end += 1
        }
        old.ring.deallocate()
    }

    /// Puts a record in the place that its stamp gives it.
    ///
    /// - Parameters:
    ///   - record: of an entry whose old record has been taken out.
    ///   - isLive: tells the records of removed entries, which are dropped if the heap is full.
    @usableFromInline
    @inline(never)
    mutating func push(_ record: Record, where isLive: (Record) -> Bool) {
        if heapCount == heapCapacity { makeRoomInHeap(where: isLive) }
        var place = heapCount
        heapCount += 1
        while place > 0, heap[(place - 1) / 2].stamp > record.stamp {
            (heap + place).initialize(to: heap[(place - 1) / 2])
            place = (place - 1) / 2
        }
        (heap + place).initialize(to: record)
    }

    /// Takes the lowest record out of the heap, which must have one.
    @usableFromInline
    @inline(never)
    mutating func popHeap() {
        heapCount -= 1
        if heapCount > 0 { siftDown(heap[heapCount], from: 0) }
    }

    private func siftDown(_ record: Record, from start: Int) {
        var place = start
        while true {
            var child = place * 2 + 1
            guard child < heapCount else { break }
            if child + 1 < heapCount, heap[child + 1].stamp < heap[child].stamp { child += 1 }
            guard heap[child].stamp < record.stamp else { break }
            heap[place] = heap[child]
            place = child
        }
        heap[place] = record
    }

    private mutating func makeRoomInHeap(where isLive: (Record) -> Bool) {
        var live = 0
        for place in 0..<heapCount where isLive(heap[place]) {
            heap[live] = heap[place]
            live += 1
        }
        heapCount = live
        for place in stride(from: live / 2 - 1, through: 0, by: -1) {
            siftDown(heap[place], from: place)
        }
        guard live > heapCapacity / 2 else { return }
        let old = heap
        heap = .allocate(capacity: heapCapacity * 2)
        heap.moveInitialize(from: old, count: live)
        heapCapacity *= 2
        old.deallocate()
    }
}
