import Synchronization

@_spi(Benchmarks)
extension DiskEntry {
    /// Reads from `offset` on, as far as bytes are stored in a row.
    ///
    /// A block's checksum is verified at its first read in this process. A block that does not
    /// match, or that the disk cannot read, becomes a gap, and what precedes it is returned.
    ///
    /// - Parameters:
    ///   - offset: the first byte wanted.
    ///   - buffer: where the bytes go; its size is the most that is read.
    /// - Returns: the number of bytes; 0 if the first is not stored or lies at or beyond the end.
    public func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        noteRead(at: offset)
        if let hot = hot(at: offset, buffer.count) {
            let count = readVerified(
                hot.file,
                at: hot.position,
                offset: offset,
                into: hot.buffer(buffer)
            )
            if isUnchanged(since: hot.version) { return count }
        }
        return readStored(at: offset, into: buffer)
    }

    /// Reads like ``read(at:into:)`` if that needs no disk; may be called on any thread.
    ///
    /// May return fewer bytes than are stored, where the rest is not in the page cache.
    public func readWithoutBlocking(
        at offset: Int64,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> NonBlocking<Int> {
        noteRead(at: offset)
        if let hot = hot(at: offset, buffer.count) {
            let result = readCached(hot.file, at: hot.position, into: hot.buffer(buffer))
            if isUnchanged(since: hot.version) { return result }
        }
        return readStoredWithoutBlocking(at: offset, into: buffer)
    }

    /// The stored bytes of a range, from its start on, as ``read(at:into:)`` reads them.
    func readAll(_ range: Range<Int64>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            count = read(at: range.lowerBound, into: UnsafeMutableRawBufferPointer(buffer))
        }
    }

    // MARK: All stored, all verified

    private struct Hot {
        var file: OpenFile
        var position: Int64
        var count: Int
        /// ``DiskEntry/givenUp`` before any of it was looked at.
        var version: UInt64

        func buffer(_ whole: UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer {
            UnsafeMutableRawBufferPointer(start: whole.baseAddress, count: count)
        }
    }

    /// Recomputes what hits go by; after every change of table or file.
    func refreshHotBody() {
        state.withLock { refreshHotBody(&$0) }
    }

    /// The same for a state that is being changed, so that of two changes the later one stays.
    func refreshHotBody(_ state: inout DiskEntryState) {
        let hot = state.isTrusted ? state.hotBody : nil
        // The length first: the releasing store of the file publishes both.
        hotLength.store(hot?.length ?? 0, ordering: .relaxed)
        hotBody.store(hot?.packed ?? 0, ordering: .releasing)
    }

    @inline(__always)
    private func hot(at offset: Int64, _ count: Int) -> Hot? {
        let version = givenUp.load(ordering: .acquiring)
        let packed = hotBody.load(ordering: .acquiring)
        guard packed != 0 else { return nil }
        let length = hotLength.load(ordering: .relaxed)
        guard offset >= 0, offset < length else {
            return Hot(file: OpenFile(number: -1), position: 0, count: 0, version: version)
        }
        return Hot(
            file: OpenFile(number: Int32(truncatingIfNeeded: Int64(bitPattern: packed) >> 32)),
            position: Int64(packed & 0xFFFF_FFFF) >> 1 + offset,
            count: Int(min(Int64(count), length - offset)),
            version: version
        )
    }

    /// Whether no block was given up, so that what was read by then is what was stored.
    @inline(__always)
    func isUnchanged(since version: UInt64) -> Bool {
        givenUp.load(ordering: .sequentiallyConsistent) == version
    }

    /// Reads what the page cache holds; the blocking form meets what is wrong and charges it.
    func readCached(
        _ file: OpenFile,
        at position: Int64,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> NonBlocking<Int> {
        guard buffer.count > 0 else { return .ready(0) }
        do throws(FileSystemError) {
            let result = try fileSystem.readWithoutBlocking(file, into: buffer, at: position)
            if case .ready(0) = result { return .wouldBlock }
            return result
        } catch {
            return .wouldBlock
        }
    }

    private func readVerified(
        _ file: OpenFile,
        at position: Int64,
        offset: Int64,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        guard buffer.count > 0 else { return 0 }
        let count = readCounting(file, at: position, into: buffer)
        if count < buffer.count {
            didReadShort(file, at: offset + Int64(count))
        }
        return count
    }

    /// Reads; a disk error is the same as an end of file: what lies behind it is missing.
    func readCounting(
        _ file: OpenFile,
        at position: Int64,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        do throws(FileSystemError) {
            return try fileSystem.read(file, into: buffer, at: position)
        } catch {
            store?.count(\.readErrors)
            return 0
        }
    }

    /// The disk failed, or the file was truncated from outside: what cannot be read becomes a gap,
    /// and so does all that lies behind the end of the file, before something is written there
    /// again.
    func didReadShort(_ file: OpenFile, at offset: Int64) {
        lose(BlockTable.block(at: offset))
        loseBehindEnd(of: file)
    }

    /// Makes gaps of all blocks that the file cannot have, because it was truncated from outside.
    ///
    /// - Returns: whether it had them all.
    @discardableResult
    func loseBehindEnd(of file: OpenFile) -> Bool {
        // In this order: a block that was there before the look was written by then.
        let storedEnd = state.withLock { $0.body == file ? $0.storedEnd : 0 }
        guard storedEnd > 0 else { return true }
        do throws(FileSystemError) {
            let size = try fileSystem.status(of: file).size
            guard size < storedEnd else { return true }
            let lost = state.withLock { state in
                guard state.body == file else { return [Int]() }
                defer {
                    refreshHotBody(&state)
                    givenUp.add(1, ordering: .sequentiallyConsistent)
                }
                return state.loseBlocks(behind: size)
            }
            for block in lost { store?.didLose(block: block, of: self) }
            return false
        } catch {
            store?.count(\.readErrors)
            return false
        }
    }

    /// Makes a block that turned out to be damaged a gap.
    func lose(_ block: Int) {
        let wasStored = state.withLock { state in
            guard state.table.isStored(block) else { return false }
            state.table.lose(block)
            return true
        }
        refreshHotBody()
        // Given up, it is no damage.
        if wasStored { store?.didLose(block: block, of: self) }
    }
}

extension DiskEntryState {
    /// Where the last stored block ends in the file; 0 if none is stored.
    fileprivate var storedEnd: Int64 {
        guard let last = table.lastStored else { return 0 }
        return bodyOffset + table.extent(of: last).upperBound
    }

    /// - Returns: the blocks of which a file of that size lacks something; they are gaps now.
    fileprivate mutating func loseBlocks(behind size: Int64) -> [Int] {
        let first = BlockTable.block(at: max(size - bodyOffset, 0))
        let lost = (first..<max(first, table.checksums.count)).filter { block in
            table.isStored(block) && bodyOffset + table.extent(of: block).upperBound > size
        }
        for block in lost { table.lose(block) }
        return lost
    }

    /// What hits go by, if all of a body is stored and verified.
    fileprivate var hotBody: (packed: UInt64, length: Int64)? {
        guard let body, let length = table.completeLength, table.isComplete, table.isVerified else {
            return nil
        }
        // A body starts within a record of less than 33 MiB; 1 tells it from "none".
        let packed = UInt64(UInt32(bitPattern: body.number)) << 32 | UInt64(bodyOffset) << 1
        return (packed | 1, length)
    }
}
