// The kernel sends bytes of a body straight from its file, for as long as a client takes to read
// them. What it sends cannot be looked at any more: so only blocks are leased that this process has
// verified, of bodies that are never punched.
extension DiskEntry {
    /// Lends bytes to be sent from the file.
    ///
    /// - Parameter range: which ones; not empty.
    /// - Returns: the first of them, as far as they lie in verified blocks; nil if there are none,
    ///   the page cache does not hold them, or the body may be punched.
    package func lease(_ range: Range<Int64>) -> LeasedBytes? {
        noteRead(at: range.lowerBound)
        // A socket refers to the pages of the file, which punching a part of them fills with zeros
        // in place. It does so until the peer has read the bytes: on loopback long after they were
        // acknowledged, so that nothing here can tell when.
        guard !mayBePunched, let lease = state.withLock({ $0.lease(range) }) else { return nil }
        guard let descriptor = fileSystem.sendable(lease.file, range: lease.place) else {
            endLease(lease)
            return nil
        }
        return LeasedBytes(self, lease: lease, descriptor: descriptor)
    }

    /// Whether bytes are being sent that the file has lost, because it was truncated from outside.
    ///
    /// The kernel stops at the end of the file. Where something is written behind that, it goes on
    /// and sends the hole.
    func isSendingBehindEnd(of file: OpenFile) -> Bool {
        let end = state.withLock { state in
            state.leased.map { state.bodyOffset + $0.upperBound }.max() ?? 0
        }
        guard end > 0 else { return false }
        do throws(FileSystemError) {
            return try fileSystem.status(of: file).size < end
        } catch {
            store?.count(\.readErrors)
            return true
        }
    }

    fileprivate func endLease(_ lease: LeasedBytes.Lease) {
        state.withLock { state in
            guard let index = state.leased.firstIndex(of: lease.range) else { return }
            state.leased.swapAt(index, state.leased.endIndex - 1)
            state.leased.removeLast()
        }
    }

    fileprivate func isValid(_ lease: LeasedBytes.Lease) -> Bool {
        loseBehindEnd(of: lease.file)
        do throws(FileSystemError) {
            return try fileSystem.status(of: lease.file).size >= lease.place.upperBound
        } catch {
            // Nothing can be said of the file: as good as gone.
            return false
        }
    }
}

/// Bytes of a body that may be sent from its file; taken back with the last reference to this.
///
/// The file stays open, and the cache leaves the bytes in it, whatever becomes of the entry.
package final class LeasedBytes: Sendable {
    /// Bytes of a body, and where they stand in its file.
    fileprivate struct Lease: Sendable {
        let range: Range<Int64>
        let file: OpenFile
        let place: Range<Int64>
    }

    private let entry: DiskEntry
    private let lease: Lease
    /// The file; not to be closed.
    package let descriptor: Int32

    fileprivate init(_ entry: DiskEntry, lease: Lease, descriptor: Int32) {
        self.entry = entry
        self.lease = lease
        self.descriptor = descriptor
    }

    deinit { entry.endLease(lease) }

    /// Where they are in the body.
    package var range: Range<Int64> { lease.range }

    /// How many they are.
    package var count: Int64 { lease.range.upperBound - lease.range.lowerBound }

    /// Where they are in the file.
    package var place: Range<Int64> { lease.place }

    /// Looks whether the file still reaches that far.
    ///
    /// Where it was truncated from outside, all that lies behind its end becomes a gap, so that the
    /// next request fetches it.
    package func checkFile() -> Bool { entry.isValid(lease) }
}

extension DiskEntryState {
    fileprivate mutating func lease(_ range: Range<Int64>) -> LeasedBytes.Lease? {
        guard isTrusted, let body, range.lowerBound >= 0 else { return nil }
        let wanted = Int(range.upperBound - range.lowerBound)
        let count = verifiedCount(from: range.lowerBound, atMost: wanted)
        guard count > 0 else { return nil }
        let found = range.lowerBound..<range.lowerBound + Int64(count)
        leased.append(found)
        let start = bodyOffset + found.lowerBound
        return LeasedBytes.Lease(range: found, file: body, place: start..<start + Int64(count))
    }
}
