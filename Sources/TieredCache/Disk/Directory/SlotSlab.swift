/// Slots by number, in chunks: growing never copies, so that a million entries take no more memory
/// while they are being read than afterwards.
struct SlotSlab {
    private static let chunkBits = 12
    private static let chunkSize = 1 << chunkBits

    private var chunks: [[DiskIndex.Slot]] = []
    private var free: [Int32] = []

    /// How many numbers were ever given out.
    private(set) var end: Int32 = 0

    subscript(number: Int32) -> DiskIndex.Slot {
        @inline(__always)
        get { chunks[Int(number) >> Self.chunkBits][Int(number) & (Self.chunkSize - 1)] }
        @inline(__always)
        _modify {
            yield &chunks[Int(number) >> Self.chunkBits][Int(number) & (Self.chunkSize - 1)]
        }
    }

    /// Keeps a slot.
    ///
    /// - Returns: its number.
    mutating func add(_ slot: DiskIndex.Slot) -> Int32 {
        if let number = free.popLast() {
            self[number] = slot
            return number
        }
        if Int(end) & (Self.chunkSize - 1) == 0 {
            var chunk: [DiskIndex.Slot] = []
            // The first chunk grows: a full one has 256 KiB, too much for a small cache.
            chunk.reserveCapacity(chunks.isEmpty ? 64 : Self.chunkSize)
            chunks.append(chunk)
        }
        chunks[chunks.count - 1].append(slot)
        defer { end += 1 }
        return end
    }

    /// Gives a number back.
    mutating func remove(_ number: Int32) {
        free.append(number)
    }
}
