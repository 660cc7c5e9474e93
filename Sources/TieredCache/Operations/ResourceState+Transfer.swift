extension ResourceState {
    /// One transfer: the bytes that it will bring, and who wants them.
    package struct Transfer {
        package private(set) var group: TransferGroup
        package private(set) var coverage: Range<Int64>
        /// All bytes between the start of the coverage and here have been delivered.
        package private(set) var position: Int64
        /// The highest priority of a subscriber.
        package private(set) var priority = RequestPriority.background
        /// The end of the bytes that a subscriber wants for now.
        package private(set) var horizon: Int64 = 0
        /// The end of the transfer unless a request joins: its last subscriber lingers.
        package private(set) var lingeringEnd: Int64?
        private(set) var wants: [SubscriberID: Want] = [:]

        init(group: TransferGroup, coverage: Range<Int64>) {
            (self.group, self.coverage, position) = (group, coverage, coverage.lowerBound)
        }

        /// Whether a subscriber wants more of its bytes by now.
        package var isWanted: Bool {
            position < horizon || coverage.upperBound <= max(horizon, position)
        }

        /// The start of the block that it is in.
        var blockStart: Int64 { BlockTable.extent(around: position).lowerBound }

        /// Whether it has brought the byte at `offset`: if it is missing, it was lost.
        package func hasPassed(_ offset: Int64) -> Bool { offset < blockStart }

        /// All bytes before `position` have been delivered.
        package mutating func didAdvance(to position: Int64) {
            self.position = max(position, self.position)
        }

        /// It has restarted with the byte at `offset`, which may lie before its coverage.
        package mutating func restart(at offset: Int64) {
            let lower = min(offset, coverage.lowerBound)
            coverage = lower..<max(lower, coverage.upperBound)
            position = offset
        }

        /// It will deliver nothing at or after `end`; requests for such bytes do not join it.
        ///
        /// With the current position, or 0, no request joins at all: for work that is about to end,
        /// or that receives other bytes than expected.
        package mutating func shrink(to end: Int64) {
            guard end < coverage.upperBound else { return }
            coverage = coverage.lowerBound..<max(coverage.lowerBound, end)
        }

        /// It will deliver all bytes before `end`.
        package mutating func extend(to end: Int64) {
            guard end > coverage.upperBound else { return }
            coverage = coverage.lowerBound..<end
        }

        /// Requests of another group join it from now on, and those of its own no longer: it brings
        /// what fewer requests want than its group says.
        package mutating func move(to group: TransferGroup) { self.group = group }

        /// It ends if no subscriber wants more by now; no request joins it then.
        ///
        /// - Returns: whether it does.
        package mutating func giveUp() -> Bool {
            guard !isWanted else { return false }
            shrink(to: 0)
            return true
        }

        /// Whether it ends at `offset` because all its subscribers linger; no request joins it then.
        package mutating func endLingering(at offset: Int64) -> Bool {
            guard let lingeringEnd, offset >= lingeringEnd else { return false }
            shrink(to: 0)
            return true
        }

        /// The last reader has left: the transfer brings `amount` more bytes, and the rest of the
        /// last block or of the transfer, if that costs less than another request.
        mutating func linger(for amount: Int64) {
            let sum = position + amount
            let upper = coverage.upperBound
            let isRestShort = upper - sum <= ResourceState.bridge
            lingeringEnd = isRestShort ? max(sum, upper) : Self.blockEnd(atOrBehind: sum)
            // The block that it is in would be lost; at the end of one it is in none.
            horizon = max(horizon, Self.blockEnd(atOrBehind: position))
        }

        /// The end of the block that holds the byte before `offset`.
        private static func blockEnd(atOrBehind offset: Int64) -> Int64 {
            BlockTable.extent(around: max(0, offset - 1)).upperBound
        }

        /// Whether it will bring a byte, and the way there costs less than another request: few
        /// bytes that no other subscriber wants.
        func brings(_ offset: Int64, within maximumDistance: Int64?) -> Bool {
            guard position <= offset, offset < coverage.upperBound else { return false }
            guard let maximumDistance else { return true }
            return offset - position <= maximumDistance
                && offset - min(offset, max(position, horizon)) <= ResourceState.bridge
        }

        mutating func add(_ subscriber: SubscriberID, _ want: Want) {
            let isFirst = wants.isEmpty
            wants[subscriber] = want
            priority = isFirst ? want.priority : max(priority, want.priority)
            horizon = isFirst ? want.horizon : max(horizon, want.horizon)
            lingeringEnd = nil
        }

        mutating func remove(_ subscriber: SubscriberID) {
            guard let want = wants.removeValue(forKey: subscriber) else { return }
            // All are looked at only where it matters: thousands may share one transfer.
            let others = wants.values
            if want.horizon == horizon, !others.contains(where: { $0.horizon == horizon }) {
                horizon = others.reduce(0) { max($0, $1.horizon) }
            }
            if want.priority == priority, !others.contains(where: { $0.priority == priority }) {
                countPriority()
            }
        }

        private mutating func countPriority() {
            priority = wants.values.reduce(.background) { max($0, $1.priority) }
        }

        mutating func setPriority(
            _ priority: RequestPriority,
            of subscriber: SubscriberID
        ) {
            wants[subscriber]?.priority = priority
            countPriority()
        }

        mutating func extend(
            _ subscriber: SubscriberID,
            for range: Range<Int64>
        )
            -> Bool
        {
            // Bytes of the block that it is in are not stored yet, and not lost.
            guard range.lowerBound >= blockStart, range.lowerBound < coverage.upperBound,
                let old = wants[subscriber]?.horizon
            else { return false }
            wants[subscriber]?.horizon = max(old, range.upperBound)
            horizon = max(horizon, range.upperBound)
            return true
        }

        mutating func update<Result>(_ body: (inout Self) -> Result) -> Result {
            body(&self)
        }
    }
}
