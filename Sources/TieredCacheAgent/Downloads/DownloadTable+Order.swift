import TieredCache

// The order of those that wait.
extension DownloadTable {
    /// Moves one that waits, as aria2's `changePosition` does.
    ///
    /// - Returns: its new position, and what is to be done.
    mutating func move(
        _ gid: GID,
        to position: Int64,
        from origin: PositionOrigin
    ) throws(RPCError) -> (position: Int, actions: [Action]) {
        let waiting = waitingOnes
        guard let index = waiting.firstIndex(of: gid) else {
            throw RPCError("GID#\(gid) not found in the waiting queue.")
        }
        let start: Int64 =
            switch origin {
            case .start: 0
            case .current: Int64(index)
            case .end: Int64(waiting.count - 1)
            }
        let (wanted, overflow) = start.addingReportingOverflow(position)
        let clamped = overflow ? (position < 0 ? 0 : Int64.max) : wanted
        let target = Int(min(max(clamped, 0), Int64(waiting.count - 1)))
        return (target, target == index ? [] : place(gid, at: target))
    }

    /// What a position of `changePosition` counts from.
    enum PositionOrigin: String {
        case start = "POS_SET"
        case current = "POS_CUR"
        case end = "POS_END"
    }

    /// Puts one among those that wait.
    mutating func place(_ gid: GID, at position: Int) -> [Action] {
        order.removeAll { $0 == gid }
        let waiting = waitingOnes
        let next = position < waiting.count ? order.firstIndex(of: waiting[position]) : nil
        order.insert(gid, at: next ?? order.count)
        return rank(gid)
    }

    /// Gives one a rank between its neighbours; all others get new ones where there is none.
    mutating func rank(_ gid: GID) -> [Action] {
        guard let index = order.firstIndex(of: gid) else { return [] }
        let before = index > 0 ? live[order[index - 1]]?.record.rank ?? 0 : 0
        guard index + 1 < order.count, let after = live[order[index + 1]]?.record.rank else {
            return saveRank(nextRank(), of: gid)
        }
        guard after - before > 1 else {
            return order.flatMap { saveRank(nextRank(), of: $0) }
        }
        return saveRank(before + (after - before) / 2, of: gid)
    }

    mutating func saveRank(_ rank: Int64, of gid: GID) -> [Action] {
        live[gid]?.record.rank = rank
        return live[gid].map { [.save($0.record)] } ?? []
    }
}
