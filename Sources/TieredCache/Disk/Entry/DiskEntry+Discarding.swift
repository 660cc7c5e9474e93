import Synchronization

// Stored blocks of a huge body may be given up while it is read: those far from every reader. A
// reader needs no lock for that: it looks at a counter before and after, and reads again if that
// moved.
extension DiskEntry {
    /// Notes a read; the body counts as 64 regions at most.
    @inline(__always)
    func noteRead(at offset: Int64) {
        let region: UInt64 = 1 << UInt64(truncatingIfNeeded: offset >> regionShift & 63)
        if regions.load(ordering: .relaxed) & region == 0 {
            regions.bitwiseOr(region, ordering: .relaxed)
        }
    }

    /// How large a region is, as a power of two: 64 of them hold the body, where its length is
    /// known.
    static func regionShift(completeLength: Int64?) -> Int64 {
        // 4 MiB: the 64 regions come round every 256 MiB.
        guard let completeLength, completeLength > 0 else { return 22 }
        var shift: Int64 = 18
        while (completeLength - 1) >> shift > 63 { shift += 1 }
        return shift
    }

    /// Makes blocks gaps, before `body` gives their bytes back.
    ///
    /// - Parameters:
    ///   - lock: of the entry's name, for which a writer waits that wants such a block.
    ///   - runs: the blocks.
    ///   - body: gets the runs that may be discarded, without blocks being written. No writer writes
    ///     these runs before it returns.
    /// - Throws: what `body` throws; the blocks are gaps then too.
    func giveUp(
        _ lock: borrowing NameLock,
        runs: [Range<Int>],
        body: ([Range<Int>]) throws(FileSystemError) -> Void
    ) throws(FileSystemError) {
        let free = state.withLock { state in
            state.giveUp(runs)
            refreshHotBody(&state)
            // Counted before the bytes go: a read begun earlier, which may see zeros, then reads
            // again.
            givenUp.add(1, ordering: .sequentiallyConsistent)
            let free = DiskEntryState.runs(runs.joined().filter { !state.isClaimed($0) })
            state.claims += free.map { BlockClaim(blocks: $0, write: nil) }
            return free
        }
        defer { state.withLock { $0.release(free) } }
        try body(free)
    }

    /// Stops relying on verified blocks: another owner may discard some.
    ///
    /// What the kernel is sending is of bodies that no owner punches.
    func invalidateVerification() {
        state.withLock { state in
            state.isTrusted = false
            refreshHotBody(&state)
            givenUp.add(1, ordering: .sequentiallyConsistent)
        }
    }

    /// Runs of blocks without a read near them since the last call: at most `count` bytes, none
    /// below block `head`.
    ///
    /// Blocks already played come first, then those farthest ahead. Empty without a reader: the
    /// download of a whole body must not discard its own beginning. Empty as well while the body is
    /// to be compared, unless it is never whole: its readers alone can compare it then.
    func coldRuns(_ count: Int64, head: Int) -> [Range<Int>] {
        let recent = regions.exchange(0, ordering: .relaxed)
        let isTooLong = isTooLong
        return state.withLock { state in
            // Two calls may come close together, with no read between them: the last known readers
            // count.
            if recent != 0 { state.warm = recent }
            guard state.warm != 0, state.canGiveUp, isTooLong || !state.decision.needsBytes
            else { return [] }
            let kept = state.keptRegions(regionShift)
            let blocks = state.table.checksums.indices.filter { block in
                // A shift binds more closely than a product.
                let region = (Int64(block) * BlockTable.blockSize) >> regionShift & 63
                return block >= head && state.table.isStored(block)
                    && kept >> UInt64(region) & 1 == 0
                    && !state.isClaimed(block)
            }
            let front = Int64(state.warm.trailingZeroBitCount) << regionShift / BlockTable.blockSize
            let behind = blocks.filter { Int64($0) < front }
            let ahead = blocks.filter { Int64($0) >= front }.reversed()
            let wanted = Int(clamping: BlockTable.blockCount(count))
            return DiskEntryState.runs((behind + ahead).prefix(wanted).sorted())
        }
    }
}

extension DiskEntryState {
    /// Whether the block is being written or discarded.
    func isClaimed(_ block: Int) -> Bool { claims.contains { $0.blocks.contains(block) } }

    /// Makes gaps, for readers that may have read what was there.
    fileprivate mutating func giveUp(_ runs: [Range<Int>]) {
        for block in runs.joined() where table.isStored(block) { table.lose(block) }
    }

    fileprivate var canGiveUp: Bool {
        isPublished && !isDetached && !isInline && body != nil && !flags.contains(.pinned)
            && !flags.contains(.handedOut)
    }

    /// The blocks at readers, those right after them, and those at writers.
    fileprivate func keptRegions(_ shift: Int64) -> UInt64 {
        // Rotated: in a body of unknown length the last region is followed by the first.
        var kept = warm | warm << 1 | warm >> 63
        for tail in tails {
            let region = tail.range.lowerBound >> shift
            kept |= 1 << UInt64(region & 63) | 1 << UInt64(max(region - 1, 0) & 63)
        }
        return kept
    }
}
