/// Writes the bytes of a body in sequence, from the start of a block on.
///
/// Several writers of one entry may run at once at different places. Written bytes are readable at
/// once through any lease on the entry. Whole blocks survive the writer, and so does the last block
/// of a body of known length once it is full. Bytes of blocks that are already stored are dropped.
/// One thread at a time may write; calls block on the disk.
package final class BodyWriter: Sendable {
    /// The entry that is filled; leased while the writer lives.
    package let entry: DiskEntry
    private let tail: PartialBlock
    /// Where its room comes from, if some was set aside.
    private let promise: RoomPromise?

    /// The most that goes to the disk in one call, so that the space reserved for it stays small.
    private static let maximumWrite = 4 << 20

    init(entry: DiskEntry, tail: PartialBlock, promise: RoomPromise? = nil) {
        self.entry = entry
        self.tail = tail
        self.promise = promise
    }

    deinit {
        // On any thread, as on the event loop of a reader that keeps the end of a body which the
        // disk has refused.
        if endTail().isLast { entry.store?.runLater { [entry] in $0.didEndWriting(of: entry) } }
    }

    /// Where the next byte goes.
    package var position: Int64 { entry.state.withLock { _ in tail.range.upperBound } }

    /// Where the bytes begin that are only in memory, up to ``position``.
    package var sealedEnd: Int64 { entry.state.withLock { _ in tail.range.lowerBound } }

    /// Appends bytes.
    ///
    /// - Parameter bytes: what follows at ``position``.
    /// - Throws: ``CacheError/Code/localStorage`` when the disk refuses or the limit leaves no
    ///   room: blocks stored before stay stored, the writer can be tried again or ended.
    ///   ``CacheError/Code/invalidArgument`` when bytes lie beyond the complete length; those
    ///   before are written.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
        var rest = bytes
        while true {
            let (step, start) = nextStep(rest)
            switch step {
            case .done:
                return
            case .append(let count):
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            case .sealTail:
                try entry.seal(tail.contents, at: start, within: promise)
                advance(to: start + Int64(tail.count))
            case .seal(let count):
                let whole = UnsafeRawBufferPointer(rebasing: rest[..<count])
                try entry.seal(whole, at: start, within: promise)
                advance(to: start + Int64(count))
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            case .beyondEnd:
                throw CacheError(.invalidArgument, "more bytes than the complete length")
            case .ended:
                throw CacheError(.invalidArgument, "a writer that has ended cannot be written")
            }
        }
    }

    /// Says that the body ends at ``position``: seals what is left and records the complete length.
    ///
    /// For bodies whose length was unknown; where it is known it must be the position.
    ///
    /// - Throws: as ``write(_:)`` does; the unsealed bytes stay readable then until the writer is
    ///   ended or released. The length is either known, in memory and on disk, and the end of the
    ///   body is missing; or it is unknown as before.
    package func finish() throws(CacheError) {
        let (length, known, rest) = entry.state.withLock { state in
            (tail.range.upperBound, state.table.completeLength, tail.count)
        }
        guard known == nil || known == length else {
            throw CacheError(.invalidArgument, "the body ends before its complete length")
        }
        try entry.finish(completeLength: length, tail: rest > 0 ? tail : nil)
        end()
    }

    /// Ends the writer; an incomplete block is lost.
    ///
    /// Ending twice does nothing.
    ///
    /// - Returns: how many bytes are lost.
    @discardableResult
    package func end() -> Int {
        let (isLast, lost) = endTail()
        if isLast { entry.store?.didEndWriting(of: entry) }
        return lost
    }

    private func endTail() -> (isLast: Bool, lost: Int) {
        entry.state.withLock { state in
            guard !tail.isEnded else { return (false, 0) }
            tail.end(&state)
            if tail.count > 0 { state.didLose(tail, of: entry) }
            return (state.tails.isEmpty, tail.count)
        }
    }

    // MARK: Deciding

    private enum Step {
        case done
        case append(Int)
        case sealTail
        case seal(Int)
        case beyondEnd
        case ended
    }

    private func nextStep(_ rest: UnsafeRawBufferPointer) -> (Step, start: Int64) {
        nonisolated(unsafe) let rest = rest  // Used only while this call lasts.
        return entry.state.withLock { state in
            let start = tail.range.lowerBound
            let end = state.table.completeLength ?? .max
            if tail.isEnded { return (.ended, start) }
            let room = min(BlockTable.blockSize, end - start) - Int64(tail.count)
            if tail.count > 0, room == 0 { return (.sealTail, start) }
            if rest.isEmpty { return (.done, start) }
            if room <= 0 { return (.beyondEnd, start) }
            if tail.count == 0, let whole = Self.wholeBlocks(rest.count, from: start, end: end) {
                return (.seal(whole), start)
            }
            let count = Int(min(room, Int64(rest.count)))
            tail.append(UnsafeRawBufferPointer(rebasing: rest[..<count]), state: &state)
            // Readers find them here before they look at the disk.
            state.didChangeBytes(of: entry)
            return (.append(count), start)
        }
    }

    /// How many bytes can go to the disk without a stop in memory.
    private static func wholeBlocks(_ count: Int, from start: Int64, end: Int64) -> Int? {
        let count = Int64(min(count, maximumWrite))
        if end - start <= count { return Int(end - start) }
        let whole = count / BlockTable.blockSize * BlockTable.blockSize
        return whole > 0 ? Int(whole) : nil
    }

    private func advance(to offset: Int64) {
        entry.state.withLock { tail.advance(to: offset, &$0) }
    }
}
