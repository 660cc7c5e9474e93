import Synchronization

extension DiskEntry {
    /// What a read that is not all verified does first.
    private enum Step {
        case none
        /// Copied from the end of a running writer.
        case copied(Int)
        /// Verified blocks in a row.
        case verified(OpenFile, position: Int64, count: Int, version: UInt64)
        case unverified(Unverified)
    }

    /// One block that has to be verified.
    private struct Unverified {
        var block: Int
        var extent: Range<Int64>
        var file: OpenFile
        var position: Int64
    }

    /// Reads piece by piece: each a run of verified blocks, one unverified block, or a writer's
    /// end.
    func readStored(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var done = 0
        while done < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let count = readStep(at: offset + Int64(done), into: rest)
            guard count > 0 else { break }
            done += count
        }
        return done
    }

    private func readStep(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        switch step(at: offset, into: buffer) {
        case .none:
            return 0
        case .copied(let count):
            return count
        case .verified(let file, let position, let count, let version):
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            let result = readCounting(file, at: position, into: part)
            guard isUnchanged(since: version) else { return readStep(at: offset, into: buffer) }
            if result < count { didReadShort(file, at: offset + Int64(result)) }
            return result
        case .unverified(let part):
            return verify(part, at: offset, into: buffer)
        }
    }

    func readStoredWithoutBlocking(
        at offset: Int64,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> NonBlocking<Int> {
        switch step(at: offset, into: buffer) {
        case .none:
            return .ready(0)
        case .copied(let count):
            return .ready(count)
        case .verified(let file, let position, let count, let version):
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            let result = readCached(file, at: position, into: part)
            return isUnchanged(since: version) ? result : .wouldBlock
        case .unverified(let part):
            return verifyWithoutBlocking(part, at: offset, into: buffer)
        }
    }

    private func step(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Step {
        nonisolated(unsafe) let buffer = buffer  // Used only while this call lasts.
        return state.withLock { state in
            guard offset >= 0, !buffer.isEmpty, offset < state.table.completeLength ?? .max else {
                return .none
            }
            // First what is in memory: a block that is being sealed may meet a disk that fails.
            let count = state.copyTail(at: offset, into: buffer)
            if count > 0 { return .copied(count) }
            let block = BlockTable.block(at: offset)
            guard state.table.isStored(block), let file = state.body else { return .none }
            let extent = state.table.extent(of: block)
            guard state.isTrusted, state.table.isVerified(block) else {
                let position = state.bodyOffset + extent.lowerBound
                return .unverified(
                    Unverified(block: block, extent: extent, file: file, position: position)
                )
            }
            return .verified(
                file,
                position: state.bodyOffset + offset,
                count: state.verifiedCount(from: offset, atMost: buffer.count),
                version: givenUp.load(ordering: .acquiring)
            )
        }
    }

    /// Reads what this process has not read yet, as a read of everything would.
    ///
    /// - Returns: whether all of the body is stored.
    func verifyAll() -> Bool {
        guard isComplete else { return false }
        var buffer = [UInt8](repeating: 0, count: Int(BlockTable.blockSize))
        for block in 0..<state.withLock({ $0.table.checksums.count }) {
            guard let start = state.withLock({ $0.unverified(block) }) else { continue }
            let count = buffer.withUnsafeMutableBytes { readStored(at: start, into: $0) }
            guard count > 0 else { return false }
        }
        return isComplete
    }

    // MARK: One block

    private func verify(
        _ part: Unverified,
        at offset: Int64,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        withBlockBuffer(part.extent, at: offset, into: buffer) { whole in
            guard readCounting(part.file, at: part.position, into: whole) == whole.count else {
                didReadShort(part.file, at: part.extent.lowerBound)
                return false
            }
            return accept(part.block, bytes: UnsafeRawBufferPointer(whole))
        }
    }

    private func verifyWithoutBlocking(
        _ part: Unverified,
        at offset: Int64,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> NonBlocking<Int> {
        var isCached = true
        let count = withBlockBuffer(part.extent, at: offset, into: buffer) { whole in
            isCached = readCached(part.file, at: part.position, into: whole) == .ready(whole.count)
            return isCached && accept(part.block, bytes: UnsafeRawBufferPointer(whole))
        }
        return isCached ? .ready(count) : .wouldBlock
    }

    /// Lends room for a whole block: the caller's own where that is enough.
    private func withBlockBuffer(
        _ extent: Range<Int64>,
        at offset: Int64,
        into buffer: UnsafeMutableRawBufferPointer,
        fill: (UnsafeMutableRawBufferPointer) -> Bool
    ) -> Int {
        let length = Int(extent.upperBound - extent.lowerBound)
        if offset == extent.lowerBound, buffer.count >= length {
            return fill(UnsafeMutableRawBufferPointer(rebasing: buffer[..<length])) ? length : 0
        }
        return withUnsafeTemporaryAllocation(byteCount: length, alignment: 64) { whole in
            guard fill(whole) else { return 0 }
            let start = Int(offset - extent.lowerBound)
            let count = min(buffer.count, length - start)
            buffer.copyMemory(
                from: UnsafeRawBufferPointer(rebasing: whole[start..<(start + count)])
            )
            return count
        }
    }

    /// Compares a block with its checksum and remembers the outcome.
    private func accept(_ block: Int, bytes: UnsafeRawBufferPointer) -> Bool {
        let checksum = blockChecksum(bytes)
        let (matches, isVerified) = state.withLock { state in
            guard state.table.isStored(block), state.table.checksums[block] == checksum else {
                return (false, false)
            }
            state.table.verify(block)
            return (true, state.table.isVerified)
        }
        guard matches else {
            lose(block)
            return false
        }
        if isVerified { refreshHotBody() }
        return true
    }
}

extension DiskEntryState {
    /// Where a block begins that has to be read before it can be believed.
    fileprivate func unverified(_ block: Int) -> Int64? {
        guard !isTrusted || !table.isVerified(block) else { return nil }
        return table.extent(of: block).lowerBound
    }

    /// How many bytes from `offset` on lie in verified blocks.
    func verifiedCount(from offset: Int64, atMost maximum: Int) -> Int {
        var block = BlockTable.block(at: offset)
        var end = offset
        while end - offset < Int64(maximum), table.isStored(block), table.isVerified(block) {
            end = table.extent(of: block).upperBound
            block += 1
        }
        return Int(min(end - offset, Int64(maximum)))
    }

    /// Serves the end of a running writer: slow streams need not wait for a whole block.
    fileprivate mutating func copyTail(
        at offset: Int64,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        tails.first { $0.range.contains(offset) }?.copy(at: offset, into: buffer) ?? 0
    }
}
