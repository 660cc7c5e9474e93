// The kernel sends bytes of a body straight from its file, for as long as a client takes to read them.
// What it sends cannot be looked at any more: so only blocks are lent that this process has verified,
// and the bytes of a lent block stay, even if the block is given up meanwhile.
extension DiskEntry {
    /// Lends bytes to be sent from the file.
    ///
    /// - Parameter range: which ones; not empty.
    /// - Returns: the first of them, as far as they lie in verified blocks; nil if there are none, or
    ///   the page cache does not hold them.
    package func lend(_ range: Range<Int64>) -> LentBytes? {
        noteRead(at: range.lowerBound)
        guard let loan = state.withLock({ $0.lend(range) }) else { return nil }
        guard let descriptor = fileSystem.sendable(loan.file, loan.place) else {
            takeBack(loan)
            return nil
        }
        return LentBytes(self, loan, descriptor: descriptor)
    }

    /// Whether bytes are being sent that the file has lost, because it was truncated from outside.
    ///
    /// The kernel stops at the end of the file. Where something is written behind that, it goes on and
    /// sends the hole.
    func isSendingBehindEnd(of file: OpenFile) -> Bool {
        let end = state.withLock { state in
            state.lent.map { state.bodyOffset + $0.upperBound }.max() ?? 0
        }
        guard end > 0 else { return false }
        do throws(FileSystemError) {
            return try fileSystem.status(of: file).size < end
        } catch {
            store?.count(\.readErrors)
            return true
        }
    }

    fileprivate func takeBack(_ loan: LentBytes.Loan) {
        state.withLock { state in
            guard let index = state.lent.firstIndex(of: loan.range) else { return }
            state.lent.swapAt(index, state.lent.endIndex - 1)
            state.lent.removeLast()
        }
    }

    fileprivate func holds(_ loan: LentBytes.Loan) -> Bool {
        loseBehindEnd(of: loan.file)
        do throws(FileSystemError) {
            return try fileSystem.status(of: loan.file).size >= loan.place.upperBound
        } catch {
            // Nothing can be said of the file: as good as gone.
            return false
        }
    }
}

/// Bytes of a body that may be sent from its file; taken back with the last reference to this.
///
/// The file stays open, and the cache leaves the bytes in it, whatever becomes of the entry.
package final class LentBytes: Sendable {
    /// Bytes of a body, and where they stand in its file.
    fileprivate struct Loan: Sendable {
        let range: Range<Int64>
        let file: OpenFile
        let place: Range<Int64>
    }

    private let entry: DiskEntry
    private let loan: Loan
    /// The file; not to be closed.
    package let descriptor: Int32

    fileprivate init(_ entry: DiskEntry, _ loan: Loan, descriptor: Int32) {
        self.entry = entry
        self.loan = loan
        self.descriptor = descriptor
    }

    deinit { entry.takeBack(loan) }

    /// Where they are in the body.
    package var range: Range<Int64> { loan.range }

    /// How many they are.
    package var count: Int64 { loan.range.upperBound - loan.range.lowerBound }

    /// Where they are in the file.
    package var place: Range<Int64> { loan.place }

    /// Looks whether the file still reaches that far.
    ///
    /// Where it was truncated from outside, all that lies behind its end becomes a gap, so that the
    /// next request fetches it.
    package func checkFile() -> Bool { entry.holds(loan) }
}

extension DiskEntryState {
    func isLent(_ block: Int) -> Bool {
        let extent = table.extent(of: block)
        return lent.contains { $0.overlaps(extent) }
    }

    fileprivate mutating func lend(_ range: Range<Int64>) -> LentBytes.Loan? {
        guard isTrusted, let body, range.lowerBound >= 0 else { return nil }
        let wanted = Int(range.upperBound - range.lowerBound)
        let count = verifiedCount(from: range.lowerBound, atMost: wanted)
        guard count > 0 else { return nil }
        let found = range.lowerBound..<range.lowerBound + Int64(count)
        lent.append(found)
        let start = bodyOffset + found.lowerBound
        return LentBytes.Loan(range: found, file: body, place: start..<start + Int64(count))
    }
}
