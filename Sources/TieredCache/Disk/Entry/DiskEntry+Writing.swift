import Synchronization

extension DiskEntry {
    /// Starts to write the body from `offset` on.
    ///
    /// - Parameter offset: a multiple of ``blockSize``, below the complete length if that is known;
    ///   or 0.
    /// - Returns: the writer; end it or release it.
    /// - Throws: ``CacheError/Code/notOwner``, or ``CacheError/Code/invalidArgument`` for an offset
    ///   that is no block's.
    package func beginWriting(at offset: Int64) throws(CacheError) -> BodyWriter {
        try beginWriting(at: offset, within: nil)
    }

    /// The same with room that was set aside for it.
    func beginWriting(
        at offset: Int64,
        within promise: RoomPromise?
    ) throws(CacheError) -> BodyWriter {
        let store = try openStore()
        try store.beginWriting(looks: false)
        defer { store.endWriting() }
        guard offset >= 0, offset % BlockTable.blockSize == 0,
            offset == 0 || offset < completeLength ?? .max
        else { throw CacheError(.invalidArgument, "a writer cannot start at byte \(offset)") }
        try store.checkEnd(offset)
        try store.prepareForWriting(self)
        let tail = PartialBlock(at: offset)
        state.withLock { $0.tails.append(tail) }
        return BodyWriter(entry: self, tail: tail, promise: promise)
    }

    /// Replaces the metadata, and what else is given, and keeps the body: a freshened response.
    ///
    /// - Parameters:
    ///   - metadata: the new metadata.
    ///   - completeLength: the complete length, where it was unknown until now.
    /// - Throws: ``CacheError/Code/localStorage`` or ``CacheError/Code/notOwner``; the entry is as
    ///   before then.
    package func updateMetadata(
        _ metadata: [UInt8],
        completeLength: Int64? = nil
    ) throws(CacheError) {
        let store = try openStore()
        try store.checkSizes(key, metadata: metadata.count, completeLength: completeLength)
        if completeLength == nil || completeLength == self.completeLength,
            try store.overwriteMetadata(of: self, with: metadata)
        {
            return
        }
        try store.replaceRecord(of: self) { state in
            state.metadata = metadata
            if let completeLength, state.table.completeLength == nil {
                state.table.completeLength = completeLength
            }
        }
    }

    /// Waits until what is held by now is on the medium, so that no power cut takes it away.
    ///
    /// What arrives meanwhile may or may not be.
    ///
    /// - Throws: ``CacheError/Code/localStorage``: the bytes are there, but may not survive.
    package func checkpoint() throws(CacheError) {
        try openStore().checkpoint(self)
    }

    /// Protects the entry from eviction, or ends that; so it does for the next generation of the
    /// key that is being brought, or for the one that has the name meanwhile.
    package func setPinned(_ isPinned: Bool) throws(CacheError) {
        try openStore().setPinned(isPinned, of: self)
    }

    /// Writes whole blocks, those apart that are stored.
    ///
    /// What another writer is writing is waited for, so that all is stored when this returns, by
    /// whichever of them; what the other one could not write is written here.
    ///
    /// `bytes` are whole blocks, or reach up to the complete length; `offset` is the start of one.
    func seal(
        _ bytes: UnsafeRawBufferPointer,
        at offset: Int64,
        within promise: RoomPromise? = nil
    ) throws(CacheError) {
        let store = try openStore()
        let first = BlockTable.block(at: offset)
        var missing = Array(first..<(first + Int(BlockTable.blockCount(Int64(bytes.count)))))
        while !missing.isEmpty {
            let write = store.nextWrite()
            missing = try store.writes.withLock(of: write) { () throws(CacheError) in
                let (runs, taken) = state.withLock { $0.claim(missing, for: write) }
                defer { state.withLock { $0.release(runs) } }
                for run in runs {
                    let start = (run.lowerBound - first) * Int(BlockTable.blockSize)
                    let end = min(bytes.count, (run.upperBound - first) * Int(BlockTable.blockSize))
                    try store.write(
                        UnsafeRawBufferPointer(rebasing: bytes[start..<end]),
                        blocks: run,
                        of: self,
                        within: promise
                    )
                }
                return taken
            }
            if let block = missing.first { waitForClaim(of: block, in: store) }
        }
    }

    /// Seals the unsealed ends of writers that are whole blocks.
    ///
    /// Their writers do it as well: on return it is done, by whichever of them.
    ///
    /// - Throws: as ``BodyWriter/write(_:)`` does.
    func sealFullEnds() throws(CacheError) {
        let ends = state.withLock { state in
            state.tails.filter { $0.isFull(until: state.table.completeLength) }
                .map { ($0.range.lowerBound, [UInt8]($0.contents)) }
        }
        for (offset, bytes) in ends {
            try bytes.withUnsafeBufferPointer { (bytes) throws(CacheError) in
                try seal(UnsafeRawBufferPointer(bytes), at: offset)
            }
        }
    }

    /// Waits until what has claimed a block is done with it.
    private func waitForClaim(of block: Int, in store: DiskStore) {
        guard let claim = state.withLock({ $0.claims.first { $0.blocks.contains(block) } }) else {
            return
        }
        if let write = claim.write {
            store.writes.withLock(of: write) {}
        } else {
            store.withLock(of: name) { _ in }
        }
    }

    /// Records the length of a body of unknown length, then seals its end.
    ///
    /// In this order: a last block that is stored while the length is unknown would be taken for a
    /// full one, and given up as damaged. Where the first step fails nothing has changed, where the
    /// second one does the body lacks its end.
    func finish(completeLength: Int64, tail: PartialBlock?) throws(CacheError) {
        let store = try openStore()
        try store.checkSizes(key, metadata: 0, completeLength: completeLength)
        if !store.changeUnrecorded(self, change: { $0.table.completeLength = completeLength }) {
            try store.replaceRecord(of: self) { $0.table.completeLength = completeLength }
        }
        if let tail {
            try seal(tail.contents, at: tail.range.lowerBound)
        } else if completeLength == 0, !state.withLock({ $0.isOnDisk }) {
            try store.publishEmpty(self)
        } else {
            _ = try takeNameUnlessJudged()
        }
    }
}

extension DiskEntryState {
    /// Whether there is a file, or was one.
    fileprivate var isOnDisk: Bool { isPublished || isDetached || body != nil }

    /// Takes the blocks that are neither stored nor claimed.
    ///
    /// - Returns: those, in runs, and the ones that others have claimed.
    fileprivate mutating func claim(
        _ blocks: [Int],
        for write: UInt64
    ) -> (runs: [Range<Int>], taken: [Int]) {
        let missing = blocks.filter { !table.isStored($0) }
        let taken = missing.filter(isClaimed)
        let runs = Self.runs(missing.filter { !isClaimed($0) })
        claims += runs.map { BlockClaim(blocks: $0, write: write) }
        return (runs, taken)
    }

    /// Blocks in ascending order, those in a row together.
    static func runs(_ blocks: [Int]) -> [Range<Int>] {
        blocks.reduce(into: []) { runs, block in
            if let last = runs.last, last.upperBound == block {
                runs[runs.count - 1] = last.lowerBound..<(block + 1)
            } else {
                runs.append(block..<(block + 1))
            }
        }
    }

    mutating func release(_ runs: [Range<Int>]) {
        for run in runs {
            if let index = claims.firstIndex(where: { $0.blocks == run }) {
                claims.remove(at: index)
            }
        }
    }
}
