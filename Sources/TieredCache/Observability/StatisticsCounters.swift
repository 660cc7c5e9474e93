import Synchronization

/// The running counts behind ``MediaCache/Statistics``, cheap enough for the hit path.
///
/// Every thread adds to one of sixteen rows, chosen by its identity, so that threads seldom share a
/// cache line; reading adds up the rows.
///
/// - Complexity: an addition is one relaxed atomic operation; ``statistics`` reads all rows.
package final class StatisticsCounters: Sendable {
    /// The counters, in the order of the file STATS, so new ones go to the end.
    package enum Counter: Int, CaseIterable, Sendable {
        case memoryHits
        case diskHits
        case misses
        case revalidations
        case revalidationsUnchanged
        case staleServed
        case bytesFromMemory
        case bytesFromDisk
        case bytesFromOrigin
        case bytesStored
        case bytesEvicted
        case entriesEvicted
        case downloadsStarted
        case downloadsFinished
        case downloadsFailed
        case downloadsShared
        case storageFailures
        case entriesExpired
        case entriesReplaced
        case entriesRemoved
        case entriesCorrupted
        case blocksDamaged
        case missesAbsent
        case missesVariant
        case missesStale
        case missesPartial
        case missesDamaged
        case missesBypassed
    }

    private static let rows = 16
    /// Counters in a row, rounded up to whole cache lines of 64 bytes.
    private static let stride = 32

    // Unsafe to the compiler, which cannot see that the memory holds only atomics and lives as long
    // as this object.
    private nonisolated(unsafe) let cells: UnsafeMutablePointer<Atomic<Int64>>

    package init() {
        precondition(Counter.allCases.count <= Self.stride)
        let count = Self.rows * Self.stride
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: count * MemoryLayout<Atomic<Int64>>.stride,
            alignment: 64
        )
        cells = memory.bindMemory(to: Atomic<Int64>.self, capacity: count)
        for index in 0..<count { (cells + index).initialize(to: Atomic(0)) }
    }

    deinit {
        cells.deinitialize(count: Self.rows * Self.stride)
        UnsafeMutableRawPointer(cells).deallocate()
    }

    /// Adds to a counter; wraps around at the ends of `Int64`, never traps.
    package func add(_ amount: Int64 = 1, to counter: Counter) {
        cells[Self.row() * Self.stride + counter.rawValue].wrappingAdd(amount, ordering: .relaxed)
    }

    /// Counts a hit in memory and its bytes; both counters lie in one cache line.
    @inline(__always)
    package func addMemoryHit(bytes: Int64) {
        let row = cells + Self.row() * Self.stride
        row[Counter.memoryHits.rawValue].wrappingAdd(1, ordering: .relaxed)
        row[Counter.bytesFromMemory.rawValue].wrappingAdd(bytes, ordering: .relaxed)
    }

    /// The current value of a counter.
    package func value(of counter: Counter) -> Int64 {
        (0..<Self.rows).reduce(0) { sum, row in
            sum &+ cells[row * Self.stride + counter.rawValue].load(ordering: .relaxed)
        }
    }

    /// The current values of all counters.
    package var statistics: MediaCache.Statistics {
        var statistics = MediaCache.Statistics()
        for counter in Counter.allCases {
            statistics[keyPath: counter.field] = value(of: counter)
        }
        return statistics
    }

    private static func row() -> Int {
        // Threads' control blocks lie at multiples of large powers of two; the multiplication
        // carries their differences into the upper bits.
        Int(truncatingIfNeeded: (ThreadNumber.current &* 0x9E37_79B9_7F4A_7C15) >> 60)
    }
}

extension StatisticsCounters.Counter {
    /// The property of the public value with this counter.
    var field: WritableKeyPath<MediaCache.Statistics, Int64> {
        switch self {
        case .memoryHits: \.memoryHits
        case .diskHits: \.diskHits
        case .misses: \.misses
        case .revalidations: \.revalidations
        case .revalidationsUnchanged: \.revalidationsUnchanged
        case .staleServed: \.staleServed
        case .bytesFromMemory: \.bytesFromMemory
        case .bytesFromDisk: \.bytesFromDisk
        case .bytesFromOrigin: \.bytesFromOrigin
        case .bytesStored: \.bytesStored
        case .bytesEvicted: \.bytesEvicted
        case .entriesEvicted: \.entriesEvicted
        case .downloadsStarted: \.downloadsStarted
        case .downloadsFinished: \.downloadsFinished
        case .downloadsFailed: \.downloadsFailed
        case .downloadsShared: \.downloadsShared
        case .storageFailures: \.storageFailures
        case .entriesExpired: \.entriesExpired
        case .entriesReplaced: \.entriesReplaced
        case .entriesRemoved: \.entriesRemoved
        case .entriesCorrupted: \.entriesCorrupted
        case .blocksDamaged: \.blocksDamaged
        case .missesAbsent: \.missesAbsent
        case .missesVariant: \.missesVariant
        case .missesStale: \.missesStale
        case .missesPartial: \.missesPartial
        case .missesDamaged: \.missesDamaged
        case .missesBypassed: \.missesBypassed
        }
    }
}
