@testable import TieredCache

/// The states of four resources and the machine of their queue, as `SharedTransfers` joins them.
struct RequestQueueComposition {
    typealias Action = RequestQueueModel.Action

    var machine: RequestQueueStateMachine
    private(set) var resources: [CacheKey: ResourceState] = [:]
    /// The resource of each transfer and subscriber, by number.
    private var keys: [UInt64: CacheKey] = [:]
    private var last: UInt64 = 0
    /// Stand for the resources to the queue.
    private var tokens: [CacheKey: Token] = [:]

    private final class Token {}

    init(limits: RequestQueueStateMachine.Limits) {
        machine = RequestQueueStateMachine(limits: limits)
    }

    /// A call for one that is unknown changes this one.
    subscript(number: UInt64) -> ResourceState {
        get { keys[number].flatMap { resources[$0] } ?? ResourceState() }
        set { if let key = keys[number] { resources[key] = newValue } }
    }

    mutating func join(
        _ group: TransferGroup,
        wanting offset: Int64,
        coverage: Range<Int64>,
        host: String,
        _ want: ResourceState.Want,
        within maximumDistance: Int64?,
        stopsAtOthers: Bool
    ) -> (join: RequestQueueModel.Join, actions: [Action]) {
        last += 1
        let subscriber = SubscriberID(number: last)
        keys[last] = group.key
        var resource = resources[group.key, default: ResourceState()]
        defer { resources[group.key] = resource }
        let joined = resource.join(
            group,
            wanting: offset,
            as: subscriber,
            want,
            within: maximumDistance
        )
        if let joined {
            let end = resource.transfers[joined]?.coverage.upperBound ?? 0
            let priority = resource.transfers[joined]?.priority ?? .background
            return (
                .init(subscriber: subscriber, transfer: joined, isNew: false, end: end),
                queue(machine.setPriority(priority, of: joined))
            )
        }
        let id = TransferID(number: last)
        let end = resource.begin(
            id,
            of: group,
            wanting: offset,
            coverage: coverage,
            stopsAtOthers: stopsAtOthers,
            as: subscriber,
            want
        )
        let token = tokens[group.key] ?? Token()
        tokens[group.key] = token
        let actions = machine.enter(
            id,
            host: host,
            resource: ObjectIdentifier(token),
            priority: want.priority
        )
        guard let actions else {
            resource.end(id, with: .failure(.queueShutDown))
            return (
                .init(subscriber: subscriber, transfer: nil, isNew: false, end: end),
                [.complete(subscriber, .failed(.shutDown))]
            )
        }
        return (
            .init(subscriber: subscriber, transfer: id, isNew: true, end: end), queue(actions)
        )
    }

    mutating func leave(_ subscriber: SubscriberID) -> [Action] {
        let end = Action.complete(subscriber, .failed(.cancelled))
        switch self[subscriber.number].leave(subscriber) {
        case .none: return []
        case .left(let id, let priority):
            return [end] + queue(priority.map { machine.setPriority($0, of: id) } ?? [])
        case .last(let id): return [end] + queue(machine.cancel(id))
        }
    }

    mutating func setPriority(
        _ priority: RequestPriority,
        of subscriber: SubscriberID
    )
        -> [Action]
    {
        guard let id = self[subscriber.number].setPriority(priority, of: subscriber),
            let highest = self[id.number].transfers[id]?.priority
        else { return [] }
        return queue(machine.setPriority(highest, of: id))
    }

    /// Ends all transfers of some resource, or of all.
    mutating func cancelAll(
        of key: CacheKey? = nil,
        _ error: CacheError = .leftTransfer
    ) -> [Action] {
        let all = resources.filter { key == nil || $0.key == key }.values.flatMap(\.transfers.keys)
        return all.sorted().flatMap { id in
            end(id, .failed(error.code), with: .failure(error)) + queue(machine.cancel(id))
        }
    }

    mutating func finish(_ id: TransferID) -> [Action] {
        end(id, .finished, with: .success(())) + queue(machine.didFinish(id))
    }

    private mutating func end(
        _ id: TransferID,
        _ completion: RequestQueueModel.Completion,
        with outcome: Result<Void, CacheError>
    ) -> [Action] {
        let subscribers = self[id.number].transfers[id]?.wants.keys.sorted() ?? []
        self[id.number].end(id, with: outcome)
        return subscribers.map { .complete($0, completion) }
    }

    mutating func act(
        _ input: (inout RequestQueueStateMachine) -> [RequestQueueStateMachine.Action]
    ) -> [Action] {
        queue(input(&machine))
    }

    private func queue(_ actions: [RequestQueueStateMachine.Action]) -> [Action] {
        actions.map(Action.queue)
    }
}
