import TestParts
import Testing

@testable import TieredCache

/// Random inputs, in any order, judged by `RequestQueueModel` after every step.
@Suite("Request queue, seeded interleavings", .timeLimit(.minutes(10)))
struct RequestQueueInterleavingTests {
    @Test(
        "every input has exactly the effects of the model",
        .tags(.seeded),
        arguments: TestCases.few(4, of: UInt64(0)..<40)
    )
    func interleavings(seed: UInt64) {
        var run = Interleaving(seed: seed)
        for _ in 0..<3_000 where run.failure == nil { run.step() }
        run.windUp()
        #expect(run.failure == nil, "seed \(seed)")
    }
}

private struct Interleaving {
    private typealias Action = RequestQueueStateMachine.Action

    private var random: SplitMix
    private var machine: RequestQueueStateMachine
    private var model: RequestQueueModel
    private var subscribers: [SubscriberID] = []
    private var completed: Set<SubscriberID> = []
    private var started: Set<TransferID> = []
    private var history: [String] = []
    private(set) var failure: String?

    init(seed: UInt64) {
        random = SplitMix(seed: seed)
        let limits = RequestQueueStateMachine.Limits(
            maximumDownloads: .random(in: 1...6, using: &random),
            maximumPerHost: .random(in: 1...4, using: &random),
            maximumYielded: .random(in: 0...3, using: &random),
            maximumOvertakes: .random(in: 1...8, using: &random)
        )
        machine = RequestQueueStateMachine(limits: limits)
        model = RequestQueueModel(limits: limits)
    }

    mutating func step() {
        switch Int.random(in: 0..<1_000, using: &random) {
        case ..<330: join()
        case ..<400: extend()
        case ..<450: leave()
        case ..<550: setPriority()
        case ..<700:
            onTransfer("advance") {
                $0.didAdvance($1, to: $2)
            } _: {
                $0.advance($1, to: $2)
            }
        case ..<730:
            onStarted("stall") {
                $0.didStall($1)
            } _: {
                $0.stall($1)
            }
        case ..<760:
            onStarted("stall if there is room") {
                $0.stallIfRoom($1) ?? []
            } _: {
                $0.stallIfRoom($1)
            }
        case ..<820:
            onStarted("unstall") {
                $0.didUnstall($1)
            } _: {
                $0.unstall($1)
            }
        case ..<950:
            onStarted("finish") {
                $0.didFinish($1)
            } _: {
                $0.finish($1)
            }
        case ..<970:
            onTransfer("shrink") {
                $0.shrinkCoverage(of: $1, to: $2)
            } _: {
                $0.shrink($1, to: $2)
            }
        case ..<980: cancel()
        case ..<982: compare("cancelAll", machine.cancelAll(), model.cancelAll())
        case ..<990:
            machine.suspend()
            model.suspend()
        default: compare("resume", machine.resume(), model.resume())
        }
    }

    /// Shuts down, lets all work return, and counts the completions.
    mutating func windUp() {
        compare("shutDown", machine.shutDown(), model.shutDown())
        compare("shutDown again", machine.shutDown(), [])
        join()
        for id in model.transfers.map(\.id).shuffled(using: &random) {
            compare("finish \(id)", machine.didFinish(id), model.finish(id))
        }
        if machine.slotsInUse != 0 || !machine.transfers.isEmpty || !machine.groups.isEmpty
            || machine.waiting.count != 0 || !machine.subscribers.isEmpty
        {
            fail("something is left after the shutdown: \(machine)")
        }
        if completed.count != subscribers.count { fail("a subscriber was never completed") }
    }

    private mutating func join() {
        let number = Int.random(in: 0..<8, using: &random)
        let group = TransferGroup(key: CacheKey(explicit: "\(number)"), selector: "")
        let host = "host\(number % 3)"
        let offset = randomBytes(0...99)
        let isOpenEnded = Bool.random(using: &random)
        let coverage = offset..<(isOpenEnded ? .max : offset + randomBytes(1...60))
        let priority = randomPriority()
        let distance = Bool.random(using: &random) ? nil : randomBytes(0...30)
        let horizon = Bool.random(using: &random) ? .max : offset + randomBytes(1...20)
        let expected = model.isShutDown ? nil : model.joinable(group, offset, distance)
        let join = machine.join(
            group,
            wanting: offset,
            coverage: coverage,
            host: host,
            priority: priority,
            maximumDistance: distance,
            horizon: horizon
        )
        if !model.isShutDown && join.isNew != (expected == nil) { fail("joined wrongly: \(join)") }
        if let expected, join.transfer != expected { fail("joined \(join), not \(expected)") }
        subscribers.append(join.subscriber)
        let actions = model.join(
            join,
            group: group,
            coverage: coverage,
            host: host,
            priority: priority,
            horizon: horizon
        )
        compare("join \(join.subscriber) of \(number) at \(offset)", join.actions, actions)
    }

    private mutating func leave() {
        guard let subscriber = subscribers.suffix(40).randomElement(using: &random) else { return }
        compare("leave \(subscriber)", machine.leave(subscriber), model.leave(subscriber))
    }

    private mutating func setPriority() {
        guard let subscriber = subscribers.suffix(40).randomElement(using: &random) else { return }
        let priority = randomPriority()
        compare(
            "\(subscriber) becomes \(priority)",
            machine.setPriority(priority, of: subscriber),
            model.setPriority(priority, of: subscriber)
        )
    }

    private mutating func extend() {
        guard let subscriber = subscribers.suffix(40).randomElement(using: &random) else { return }
        let first = randomBytes(0...120)
        let range = first..<first + randomBytes(1...20)
        let isAccepted = machine.extend(subscriber, for: range)
        history.append("\(subscriber) wants \(range): \(isAccepted)")
        if isAccepted != model.extend(subscriber, for: range) { fail("extended wrongly") }
    }

    /// A number of bytes near the size of blocks, and seldom a multiple of it.
    private mutating func randomBytes(_ number: ClosedRange<Int64>) -> Int64 {
        .random(in: number, using: &random) * 20_000
    }

    private mutating func cancel() {
        guard let id = model.transfers.randomElement(using: &random)?.id else { return }
        compare("cancel \(id)", machine.cancel(id), model.cancel(id))
    }

    private mutating func onTransfer(
        _ name: String,
        _ act: (inout RequestQueueStateMachine, TransferID, Int64) -> Void,
        _ actOnModel: (inout RequestQueueModel, TransferID, Int64) -> Void
    ) {
        guard let transfer = model.transfers.randomElement(using: &random) else { return }
        let offset = transfer.position + randomBytes(0...20)
        act(&machine, transfer.id, offset)
        actOnModel(&model, transfer.id, offset)
        history.append("\(name) \(transfer.id) \(offset)")
    }

    private mutating func onStarted(
        _ name: String,
        _ act: (inout RequestQueueStateMachine, TransferID) -> [Action],
        _ actOnModel: (inout RequestQueueModel, TransferID) -> [Action]
    ) {
        let transfers = model.transfers.filter { $0.state != .queued }
        guard let id = transfers.randomElement(using: &random)?.id else { return }
        compare("\(name) \(id)", act(&machine, id), actOnModel(&model, id))
    }

    private mutating func randomPriority() -> RequestPriority {
        RequestPriority.allCases.randomElement(using: &random) ?? .normal
    }

    private mutating func compare(_ input: String, _ actions: [Action], _ expected: [Action]) {
        history.append("\(input): \(actions)")
        if actions != expected { fail("expected \(expected)") }
        for action in actions { check(action) }
        checkInvariants()
    }

    /// What no model has to be asked for.
    private mutating func check(_ action: Action) {
        switch action {
        case .complete(let subscriber, _):
            if !completed.insert(subscriber).inserted { fail("completed twice") }
        case .start(let transfer):
            if !started.insert(transfer).inserted { fail("started twice") }
        case .cancel(let transfer), .grant(let transfer), .pause(let transfer):
            if !started.contains(transfer) { fail("acts on a flight that never started") }
        case .drop(let transfer):
            if started.contains(transfer) { fail("dropped a flight that had started") }
        case .drained:
            break
        }
    }

    private mutating func checkInvariants() {
        let limits = machine.limits
        if machine.slotsInUse != model.slotsInUse { fail("slots in use: \(machine.slotsInUse)") }
        if machine.slotsInUse > limits.maximumDownloads { fail("too many downloads") }
        if machine.slotsYielded != model.slotsYielded {
            fail("slots lent: \(machine.slotsYielded)")
        }
        if machine.slotsYielded > limits.maximumYielded { fail("too many wait for a first byte") }
        if machine.placesInUseByHost.values.contains(where: { $0 > limits.maximumPerHost }) {
            fail("too many downloads for a host")
        }
        if machine.placesInUseByHost.values.reduce(0, +) != machine.slotsInUse
            + machine.slotsYielded
        {
            fail("the hosts' places do not add up")
        }
        for id in model.transfers.map(\.id) where machine.isWanted(id) != model.isWanted(id) {
            fail("\(id) is wanted: \(machine.isWanted(id))")
        }
        if machine.mayKeepConnection != model.mayKeepConnection {
            fail("wrong number of kept connections")
        }
        for (id, transfer) in machine.transfers where transfer.subscribers.isEmpty {
            if case .cancelled = transfer.state { continue }
            fail("\(id) goes on without a reader")
        }
    }

    private mutating func fail(_ reason: String) {
        guard failure == nil else { return }
        failure = "\(reason); the last inputs: \(history.suffix(12).joined(separator: "\n"))"
    }
}
