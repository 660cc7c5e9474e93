/// By how much a cache grows; negative where it shrinks.
///
/// An insertion that evicts usually changes neither sum in the end. The changes are added up here
/// and charged once, because writing a counter that all threads share costs as much as a lock.
@usableFromInline
struct MemoryGrowth {
    @usableFromInline var cost: Int
    @usableFromInline var count: Int

    @inlinable
    init(cost: Int, count: Int) {
        self.cost = cost
        self.count = count
    }

    /// Takes off what left.
    @inlinable
    mutating func subtract<Key, Value>(_ removal: borrowing MemoryRemoval<Key, Value>) {
        cost &-= removal.cost
        count &-= 1
    }
}
