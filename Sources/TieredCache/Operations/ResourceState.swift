/// What the requests for one resource want of its transfers, and what those will bring.
///
/// A value without I/O, which knows neither slots nor threads; ``SharedTransfers`` calls it under
/// its lock. "The last subscriber has left" and "no request joins any more" are one step: the
/// transfer is not here any more, so that a late request gets one of its own.
///
/// | a subscriber | leads to |
/// | --- | --- |
/// | waits for a transfer | it leaves, or the transfer ends: has an outcome; `linger`: stays |
/// | stays with a transfer | `end` of its stay, or of the transfer: gone |
/// | has an outcome | `forget`: gone |
///
/// | a transfer | leads to |
/// | --- | --- |
/// | is here: those of its group join for the bytes from its position to the end of its coverage | `end`, the last subscriber leaves: gone |
/// | the same, and has brought what its subscribers want for now, or all its readers have stopped | `pause`: waits |
/// | waits | a subscriber that comes or leaves, a wider want, a read of one of its readers: goes on |
package struct ResourceState {
    /// The number of bytes that cost less than a request of their own.
    package static let bridge: Int64 = 256 << 10
    /// How long a subscriber stays whose reader has left.
    ///
    /// A body read to its end waits no longer than this for an origin that has sent the last byte
    /// but does not end the response.
    static let lingeringLimit = Duration.seconds(2)
    /// How many bytes its transfer may bring meanwhile; bytes in flight by then make up the rest of
    /// 1 MiB.
    package static let lingeringAmount: Int64 = 768 << 10
    /// How long a reader may be silent before it counts as stopped.
    static let silenceLimit = Duration.seconds(2)
    /// How far, in bytes, a transfer runs ahead of readers that have stopped.
    static let lead: Int64 = 4 << 20

    /// What a subscriber wants of its transfer.
    package struct Want {
        var priority: RequestPriority
        /// The end of the bytes that it wants for now; `.max` if it takes what comes.
        var horizon = Int64.max
    }

    private enum Subscriber {
        case waiting(TransferID)
        case ended(Result<Void, CacheError>)
    }

    private struct Reader {
        /// The transfer whose bytes it has waited for last.
        var transfer: TransferID?
        var position: Int64
        var lastSeen: MonotonicTime
    }

    /// Why a transfer waits for its readers.
    package enum Pause {
        /// No subscriber wants more for now.
        case atHorizon
        /// All its readers have stopped reading (invariant 12).
        case forReaders
    }

    /// A subscriber that lingers: its transfer knows it, and nobody else.
    package struct Stay: Sendable {
        fileprivate let subscriber: SubscriberID
        fileprivate let transfer: TransferID
    }

    /// Why a subscriber is no longer one.
    package enum Departure {
        /// It was none any more.
        case none
        /// The transfer goes on for others, with another priority if there is one here.
        case left(TransferID, priority: RequestPriority?)
        /// It was the last one: the transfer is to be cancelled.
        case last(TransferID)
    }

    package private(set) var transfers: [TransferID: Transfer] = [:]
    private var subscribers: [SubscriberID: Subscriber] = [:]
    private var readers: [ReaderID: Reader] = [:]
    private var lastReader: UInt64 = 0
    /// The transfers that wait for their readers.
    package private(set) var paused: [TransferID: Pause] = [:]

    package init() {}

    // MARK: Subscribers

    /// Subscribes to the transfer that will bring the byte at `offset`, if there is one.
    ///
    /// - Parameters:
    ///   - group: identifies requests that may share a transfer.
    ///   - offset: the first byte that the subscriber lacks.
    ///   - subscriber: a number that no other one has.
    ///   - want: its priority and the end of what it wants for now.
    ///   - maximumDistance: the maximum number of bytes between a transfer's position and `offset`;
    ///     nil for no limit.
    /// - Returns: the transfer; nil if none will bring the byte.
    package mutating func join(
        _ group: TransferGroup,
        wanting offset: Int64,
        as subscriber: SubscriberID,
        _ want: Want,
        within maximumDistance: Int64? = nil
    ) -> TransferID? {
        let reaching = transfers.lazy.filter { _, transfer in
            transfer.brings(offset, within: maximumDistance) && transfer.group == group
        }
        // The one that is furthest has the shortest way to the byte.
        let nearest = reaching.max { left, right in
            (left.value.position, right.key) < (right.value.position, left.key)
        }
        guard let (id, _) = nearest else { return nil }
        transfers[id]?.add(subscriber, want)
        subscribers[subscriber] = .waiting(id)
        resumeIfWanted(id)
        return id
    }

    /// Adds a transfer with its first subscriber.
    ///
    /// - Parameters:
    ///   - id: a number that no other one has.
    ///   - group: identifies requests that may share it.
    ///   - offset: the first byte that the subscriber lacks.
    ///   - coverage: the bytes that it would bring; contains `offset`. `..<Int64.max` if the end is
    ///     unknown.
    ///   - stopsAtOthers: whether it ends where another one goes on.
    ///   - subscriber: a number that no other one has.
    ///   - want: its priority and the end of what it wants for now.
    /// - Returns: the end of its coverage.
    package mutating func begin(
        _ id: TransferID,
        of group: TransferGroup,
        wanting offset: Int64,
        coverage: Range<Int64>,
        stopsAtOthers: Bool = false,
        as subscriber: SubscriberID,
        _ want: Want
    ) -> Int64 {
        var end = coverage.upperBound
        if stopsAtOthers, let next = nextPosition(after: offset) {
            // Whole blocks, as only those are stored.
            end = min(end, BlockTable.extent(around: next - 1).upperBound)
        }
        var transfer = Transfer(group: group, coverage: coverage.lowerBound..<end)
        transfer.add(subscriber, want)
        transfers[id] = transfer
        subscribers[subscriber] = .waiting(id)
        return end
    }

    /// Ends a subscription; a transfer without any is gone.
    ///
    /// - Parameters:
    ///   - subscriber: the subscriber.
    ///   - error: its outcome.
    /// - Returns: what that means for its transfer.
    package mutating func leave(
        _ subscriber: SubscriberID,
        with error: CacheError = .leftTransfer
    ) -> Departure {
        guard let id = transfer(of: subscriber) else { return .none }
        subscribers[subscriber] = .ended(.failure(error))
        return remove(subscriber, from: id)
    }

    /// Ends the stay of a subscriber that lingers; ignored if its transfer has ended.
    package mutating func end(_ stay: Stay) -> Departure {
        remove(stay.subscriber, from: stay.transfer)
    }

    private mutating func remove(_ subscriber: SubscriberID, from id: TransferID) -> Departure {
        guard transfers[id]?.wants[subscriber] != nil else { return .none }
        let before = transfers[id]?.priority
        transfers[id]?.remove(subscriber)
        guard let transfer = transfers[id], !transfer.wants.isEmpty else {
            (transfers[id], paused[id]) = (nil, nil)
            return .last(id)
        }
        lingerWithoutReader(id)
        resumeIfWanted(id)
        return .left(id, priority: transfer.priority == before ? nil : transfer.priority)
    }

    /// Ends a transfer, and with it the subscriptions to it; ignored if it is gone.
    package mutating func end(_ id: TransferID, with outcome: Result<Void, CacheError>) {
        guard let transfer = transfers.removeValue(forKey: id) else { return }
        paused[id] = nil
        for subscriber in transfer.wants.keys where subscribers[subscriber] != nil {
            subscribers[subscriber] = .ended(outcome)
        }
    }

    /// Drops the outcome of a subscriber.
    ///
    /// - Returns: the outcome, whose error may own much: to be released outside the lock.
    package mutating func forget(_ subscriber: SubscriberID) -> Result<Void, CacheError>? {
        guard case .ended(let outcome) = subscribers.removeValue(forKey: subscriber) else {
            return nil
        }
        return outcome
    }

    /// The transfer that a subscriber waits for.
    package func transfer(of subscriber: SubscriberID) -> TransferID? {
        guard case .waiting(let id) = subscribers[subscriber] else { return nil }
        return id
    }

    /// The outcome of a subscriber; nil while it waits.
    package func outcome(of subscriber: SubscriberID) -> Result<Void, CacheError>? {
        switch subscribers[subscriber] {
        case .waiting: nil
        case .ended(let outcome): outcome
        // It lingers, or has done so.
        case nil: .failure(.leftTransfer)
        }
    }

    /// The priority of a subscriber; the lowest once it has ended.
    package func priority(of subscriber: SubscriberID) -> RequestPriority {
        transfer(of: subscriber).flatMap { transfers[$0]?.wants[subscriber]?.priority }
            ?? .background
    }

    /// Changes the priority of a subscriber; ignored once it has ended.
    ///
    /// - Returns: its transfer, if that is a change.
    package mutating func setPriority(
        _ priority: RequestPriority,
        of subscriber: SubscriberID
    ) -> TransferID? {
        guard let id = transfer(of: subscriber),
            transfers[id]?.wants[subscriber]?.priority != priority
        else { return nil }
        transfers[id]?.setPriority(priority, of: subscriber)
        return id
    }

    /// A subscriber wants more of its transfer's bytes by now.
    ///
    /// - Parameters:
    ///   - subscriber: the subscriber.
    ///   - range: the bytes; the first one is missing.
    /// - Returns: whether the transfer will bring the first one.
    package mutating func extend(_ subscriber: SubscriberID, for range: Range<Int64>) -> Bool {
        guard let id = transfer(of: subscriber),
            transfers[id]?.extend(subscriber, for: range) ?? false
        else { return false }
        resumeIfWanted(id)
        return true
    }

    /// Lets a subscriber, whose reader has left, stay for a moment; ignored once it has ended.
    ///
    /// A player that seeks or reconnects often comes back at the next byte; it then joins the
    /// transfer instead of starting one. Nobody asks for the subscriber's outcome any more.
    ///
    /// - Parameters:
    ///   - subscriber: the subscriber.
    ///   - amount: how many bytes more its transfer brings, if no other subscriber has a reader; all
    ///     of its rest, if that is little longer. One that has paused brings the rest of its block.
    /// - Returns: its stay, to be ended after ``lingeringLimit``; nil if it had ended.
    package mutating func linger(
        _ subscriber: SubscriberID,
        for amount: Int64 = lingeringAmount
    ) -> Stay? {
        guard let id = transfer(of: subscriber) else { return nil }
        subscribers[subscriber] = nil
        lingerWithoutReader(id, for: amount)
        resumeIfWanted(id)
        return Stay(subscriber: subscriber, transfer: id)
    }

    /// Gives a transfer an end where all its subscribers linger.
    private mutating func lingerWithoutReader(
        _ id: TransferID,
        for amount: Int64 = lingeringAmount
    ) {
        guard let transfer = transfers[id], transfer.lingeringEnd == nil,
            transfer.wants.keys.allSatisfy({ subscribers[$0] == nil })
        else { return }
        transfers[id]?.linger(for: amount)
    }

    // MARK: Readers

    /// Registers a reader.
    ///
    /// - Parameters:
    ///   - position: its position in the body.
    ///   - transfer: the transfer that brings the bytes there, if there is one.
    ///   - now: the time.
    /// - Returns: its number; end with ``leave(_:)-(ReaderID)``.
    package mutating func enter(
        at position: Int64,
        of transfer: TransferID?,
        now: MonotonicTime
    ) -> ReaderID {
        lastReader += 1
        let reader = ReaderID(number: lastReader)
        readers[reader] = Reader(transfer: transfer, position: position, lastSeen: now)
        return reader
    }

    /// A reader has come to `position`; a transfer that waits because it had stopped goes on.
    ///
    /// - Parameters:
    ///   - reader: the reader.
    ///   - position: the first byte that it has not read.
    ///   - transfer: the transfer that it waits for there; nil if it does not wait.
    ///   - now: the time.
    package mutating func didRead(
        _ reader: ReaderID,
        to position: Int64,
        waitingFor transfer: TransferID? = nil,
        now: MonotonicTime
    ) {
        guard let before = readers[reader] else { return }
        let after = transfer ?? before.transfer
        readers[reader] = Reader(transfer: after, position: position, lastSeen: now)
        for id in [before.transfer, after] {
            if let id, paused[id] == .forReaders { paused[id] = nil }
        }
    }

    /// A reader has left; its subscriptions are ended apart from it.
    package mutating func leave(_ reader: ReaderID) { readers[reader] = nil }

    /// Whether all readers of a transfer have stopped: they have requested no bytes for a while, and
    /// are far behind.
    ///
    /// False for a transfer without readers: requests that wait for its head have none yet.
    func haveReadersStopped(_ id: TransferID, now: MonotonicTime) -> Bool {
        guard let transfer = transfers[id] else { return false }
        var hasReader = false
        for reader in readers.values where reader.transfer == id {
            hasReader = true
            guard transfer.position - reader.position >= Self.lead,
                reader.lastSeen.duration(to: now) >= Self.silenceLimit
            else { return false }
        }
        return hasReader
    }

    // MARK: Pauses

    /// A transfer waits for its readers, if the reason still holds.
    package mutating func pause(_ id: TransferID, _ pause: Pause, now: MonotonicTime) {
        let holds =
            switch pause {
            case .atHorizon: transfers[id].map { !$0.isWanted } ?? false
            case .forReaders: haveReadersStopped(id, now: now)
            }
        if holds { paused[id] = pause }
    }

    /// A transfer waits no longer.
    package mutating func resume(_ id: TransferID) { paused[id] = nil }

    /// Lets a transfer go on after a change of its subscribers: it finds out itself whether those
    /// that are left have stopped.
    private mutating func resumeIfWanted(_ id: TransferID) {
        switch paused[id] {
        case .atHorizon where transfers[id]?.isWanted ?? true, .forReaders: paused[id] = nil
        case .atHorizon, nil: break
        }
    }

    // MARK: Transfers

    /// Changes a transfer, or looks at it; nil if it is gone.
    package mutating func update<Result>(
        _ id: TransferID,
        _ body: (inout Transfer) -> Result
    ) -> Result? {
        transfers[id]?.update(body)
    }

    /// The other transfers of its group that are within stored bytes which end at `end` and which
    /// this one has come to.
    package func transfers(aheadOf id: TransferID, before end: Int64) -> [TransferID] {
        guard let transfer = transfers[id] else { return [] }
        return transfers.filter { other, value in
            other != id && value.group == transfer.group && transfer.position < value.position
                && value.position <= end && value.position < value.coverage.upperBound
        }.map(\.key)
    }

    /// The start of the next bytes after `offset` that a transfer, of any group, is yet to store.
    ///
    /// Those of requests with other selecting fields are of another resource and are not seen: they
    /// are never joined either.
    func nextPosition(after offset: Int64) -> Int64? {
        var next: Int64?
        for transfer in transfers.values
        where transfer.position > offset && transfer.position < transfer.coverage.upperBound {
            // It stores the block that it is in, if it began with it.
            let start = max(transfer.blockStart, transfer.coverage.lowerBound)
            next = min(next ?? .max, start > offset ? start : transfer.position)
        }
        return next
    }
}
