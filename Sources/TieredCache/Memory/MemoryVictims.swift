/// The entries that leave next, oldest first: the part of the recency order that eviction needs.
///
/// A hit only stores a stamp, a number that grows with time. When room is needed, one pass over the
/// stamps picks the oldest few hundred entries and sorts them. Exactness: every entry outside the
/// batch had a later stamp than all in it, and stamps only grow; so as long as an entry of the batch
/// has kept its stamp, it is older than everything else. One that was hit since is skipped.
///
/// Each pass is paid for by the evictions and hits that use its batch up: for 10,000 entries about
/// 20 stamps per eviction, read in sequence, where a linked list would write four neighbours' cache
/// lines at every hit.
@usableFromInline
struct MemoryVictims {
    @usableFromInline
    struct Victim {
        @usableFromInline let stamp: UInt64
        @usableFromInline let entry: Int
    }

    /// Oldest first; `next..<end` is still to come.
    ///
    /// A bare buffer: an array in a place that other
    /// modules see is checked for uniqueness and bounds at each step.
    @usableFromInline var batch: UnsafeMutablePointer<Victim>
    @usableFromInline var next = 0
    @usableFromInline var end = 0
    private var capacity = 64

    @usableFromInline
    init() {
        batch = .allocate(capacity: capacity)
        batch.initialize(to: Victim(stamp: 0, entry: -1))
    }

    /// Gives the memory back.
    func deallocate() {
        batch.deallocate()
    }

    /// The oldest entry, left in the batch, or `nil` if there are no entries.
    ///
    /// `stamps` has one element per entry number; 0 marks numbers that are not in use.
    @inlinable
    mutating func oldest(in stamps: UnsafeBufferPointer<UInt64>) -> Victim? {
        repeat {
            while next < end {
                let victim = batch[next]
                if stamps[victim.entry] == victim.stamp { return victim }
                next &+= 1
            }
        } while refill(from: stamps)
        return nil
    }

    /// Forgets the victim that ``oldest(in:)`` returned, and tells a stamp that no remaining entry
    /// is older than.
    @inlinable
    mutating func takeFirst() -> UInt64 {
        next &+= 1
        return next < end ? batch[next].stamp : batch[next &- 1].stamp &+ 1
    }

    /// Takes the oldest entries into the exhausted batch; `false` if there are none.
    ///
    /// The pass begins behind the last victim: numbers are reused in the order in which they are
    /// freed, so that without hits the batch is found in order and the sort only confirms it.
    @usableFromInline
    @inline(never)
    mutating func refill(from stamps: UnsafeBufferPointer<UInt64>) -> Bool {
        let threshold = Self.threshold(in: stamps)
        let start = min(batch[max(0, end - 1)].entry + 1, stamps.count)
        (next, end) = (0, 0)
        collect(start..<stamps.count, of: stamps, upTo: threshold)
        collect(0..<start, of: stamps, upTo: threshold)
        var whole = UnsafeMutableBufferPointer(start: batch, count: end)
        whole.sort { $0.stamp < $1.stamp }
        return end > 0
    }

    private mutating func collect(
        _ entries: Range<Int>,
        of stamps: UnsafeBufferPointer<UInt64>,
        upTo threshold: UInt64
    ) {
        for entry in entries where stamps[entry] != 0 && stamps[entry] <= threshold {
            if end == capacity { grow() }
            (batch + end).initialize(to: Victim(stamp: stamps[entry], entry: entry))
            end += 1
        }
    }

    private mutating func grow() {
        let old = batch
        batch = .allocate(capacity: capacity * 2)
        batch.moveInitialize(from: old, count: end)
        old.deallocate()
        capacity *= 2
    }

    /// A stamp that about 512 entries, or one in 64, do not exceed: found in a sample, because any
    /// threshold is correct and only the size of the batch depends on it.
    private static func threshold(in stamps: UnsafeBufferPointer<UInt64>) -> UInt64 {
        let wanted = max(512, stamps.count / 64)
        guard stamps.count > wanted else { return .max }
        let step = max(1, wanted / 32)
        var sample: [UInt64] = []
        sample.reserveCapacity(stamps.count / step + 1)
        for index in stride(from: 0, to: stamps.count, by: step) where stamps[index] != 0 {
            sample.append(stamps[index])
        }
        guard sample.count > 32 else { return .max }
        sample.sort()
        return sample[32]
    }
}
