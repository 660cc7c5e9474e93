/// Room reserved for the rest of a body before it is received.
///
/// Without it, several prefetches that fit singly but not together could all fail halfway. It ends
/// with its last reference.
final class RoomPromise: Sendable {
    private struct State {
        var left: Int64
        var isEnded = false
    }

    // Set once, in `init`: a constant cannot be weak before Swift 6.3.
    private nonisolated(unsafe) weak var store: DiskStore?
    private let state: Guarded<State>

    /// Takes over a reservation.
    init(_ store: DiskStore, reserved count: Int64) {
        self.store = store
        state = Guarded(State(left: count))
    }

    deinit {
        end()
    }

    /// Lends room to a write, which ends that part of the reservation itself.
    ///
    /// - Parameters:
    ///   - count: how much the write may take.
    ///   - store: the store that it writes to; a directory that was opened again has no promise.
    /// - Returns: how much of `count` is available.
    func take(_ count: Int64, in store: DiskStore) -> Int64 {
        guard store === self.store else { return 0 }
        return state.withLock { state in
            let taken = min(state.left, count)
            state.left -= taken
            return taken
        }
    }

    /// Takes back the room that a write did not need.
    ///
    /// - Returns: false once the promise has ended; the write ends the reservation itself then.
    func endLease(_ count: Int64) -> Bool {
        state.withLock { state in
            guard !state.isEnded else { return false }
            state.left += count
            return true
        }
    }

    /// Gives up what is left.
    func end() {
        let left = state.withLock { state in
            defer { state = State(left: 0, isEnded: true) }
            return state.left
        }
        store?.endReservation(left)
    }
}

extension DiskStore {
    /// Sets room aside for a body that is about to come, evicting for it if need be.
    ///
    /// - Throws: ``CacheError/Code/localStorage`` where only pinned entries, those in use, and
    ///   other promises are left.
    func promiseRoom(_ count: Int64, for key: CacheKey) throws(CacheError) -> RoomPromise {
        try beginWriting()
        defer { endWriting() }
        try checkEnd(count)
        // And what one write takes beyond its bytes.
        let cost = Self.cost(ofBody: count) + 16_384
        try prepareIndex(for: name(of: key))
        try checkRoom(besidePins: cost)
        try reserve(cost, for: name(of: key))
        return RoomPromise(self, reserved: cost)
    }

    /// Runs a write of `count` bytes that takes at most `cost`, within a promise as far as that
    /// goes.
    func reserving(
        _ cost: Int64,
        forBytes count: Int,
        of name: EntryName,
        within promise: RoomPromise?,
        body: () throws(CacheError) -> Void
    ) throws(CacheError) {
        let taken = promise?.take(cost, in: self) ?? 0
        do throws(CacheError) {
            if taken < cost { try reserve(cost - taken, for: name) }
        } catch {
            if promise?.endLease(taken) != true { endReservation(taken) }
            throw error
        }
        defer {
            // What was written is charged by now.
            let unused = max(0, taken - FileStatus.wholePages(Int64(count)))
            let isBack = promise?.endLease(unused) ?? false
            endReservation(isBack ? cost - unused : cost)
        }
        try body()
    }
}
