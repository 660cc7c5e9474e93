/// The memory pressure of the machine, or of the control group.
package enum MemoryPressureLevel: Int, CaseIterable, Comparable, Sendable {
    /// Nothing waits for memory.
    case normal
    /// Work is slowed down by reclaim, or our limit is near.
    case warning
    /// All work stalls at times, or the limit is almost reached: the kernel is about to kill a
    /// process.
    case critical

    /// Orders levels from relaxed to urgent.
    package static func < (left: MemoryPressureLevel, right: MemoryPressureLevel) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// A source of levels of memory pressure.
package protocol MemoryPressureSource: Sendable {
    /// The levels as they are observed, repeated while they last; ends when nothing will come.
    ///
    /// Each element is acted upon, so a level should be repeated at a steady pace of seconds.
    func levels() -> AsyncStream<MemoryPressureLevel>
}
