// The kernel sends bytes of a body straight from its file. What it sends cannot be looked at any
// more: so only blocks are leased that this process has verified, of bodies that are never punched.
// A lease ends with the call that sends, since what the page cache holds it may soon not hold, and
// whoever sent it then would wait for the disk.
extension DiskEntry {
    /// Lends bytes to be sent from the file now.
    ///
    /// - Parameters:
    ///   - range: which ones; not empty.
    ///   - send: gets the first of them, as far as they lie in verified blocks.
    /// - Returns: what `send` returns; nil if there are none, the page cache does not hold them, or
    ///   the body may be punched.
    package func lease<Result>(
        _ range: Range<Int64>,
        send: (LeasedBytes) -> Result
    ) -> Result? {
        noteRead(at: range.lowerBound)
        // A socket refers to the pages of the file, which punching a part of them fills with zeros
        // in place. It does so until the peer has read the bytes: on loopback long after they were
        // acknowledged, so that nothing here can tell when.
        guard !mayBePunched, let lease = state.withLock({ $0.lease(range) }) else { return nil }
        defer { state.withLock { $0.endLease(lease.range) } }
        guard let descriptor = fileSystem.sendable(lease.file, range: lease.place) else {
            return nil
        }
        return send(LeasedBytes(range: lease.range, place: lease.place, descriptor: descriptor))
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
}

/// Bytes of a body that may be sent from its file, within the call that has lent them.
package struct LeasedBytes {
    /// Where they are in the body.
    package let range: Range<Int64>
    /// Where they are in the file.
    package let place: Range<Int64>
    /// The file; not to be closed.
    package let descriptor: Int32

    /// How many they are.
    package var count: Int64 { range.upperBound - range.lowerBound }
}

extension DiskEntryState {
    fileprivate mutating func lease(
        _ range: Range<Int64>
    ) -> (
        range: Range<Int64>, file: OpenFile, place: Range<Int64>
    )? {
        guard isTrusted, let body, range.lowerBound >= 0 else { return nil }
        let wanted = Int(range.upperBound - range.lowerBound)
        let count = verifiedCount(from: range.lowerBound, atMost: wanted)
        guard count > 0 else { return nil }
        let found = range.lowerBound..<range.lowerBound + Int64(count)
        leased.append(found)
        let start = bodyOffset + found.lowerBound
        return (found, body, start..<start + Int64(count))
    }

    fileprivate mutating func endLease(_ range: Range<Int64>) {
        guard let index = leased.firstIndex(of: range) else { return }
        leased.swapAt(index, leased.endIndex - 1)
        leased.removeLast()
    }
}
