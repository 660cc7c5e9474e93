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
    private typealias Action = RequestQueueModel.Action

    private var random: SplitMix
    private var tested: RequestQueueComposition
    private var model: RequestQueueModel
    private var subscribers: [SubscriberID] = []
    private var completed: Set<SubscriberID> = []
    private var started: Set<TransferID> = []
    private var history: [String] = []
    private var hasDrained = false
    private(set) var failure: String?

    init(seed: UInt64) {
        random = SplitMix(seed: seed)
        let limits = RequestQueueStateMachine.Limits(
            maximumDownloads: .random(in: 1...6, using: &random),
            maximumPerHost: .random(in: 1...4, using: &random),
            maximumYielded: .random(in: 0...3, using: &random),
            maximumOvertakes: .random(in: 1...8, using: &random)
        )
        tested = RequestQueueComposition(limits: limits)
        model = RequestQueueModel(limits: limits)
    }

    mutating func step() {
        defer { model.settle() }
        switch Int.random(in: 0..<1_000, using: &random) {
        case ..<330: join()
        case ..<400: extend()
        case ..<450: leave()
        case ..<550: setPriority()
        case ..<570: pause()
        case ..<680:
            onTransfer("advance") {
                $0.didAdvance(to: $1)
            } _: {
                $0.advance($1, to: $2)
            }
        case ..<700:
            onStarted("respond") { machine, id in
                machine.didRespond(id)
                return []
            } _: { model, id in
                model.respond(id)
                return []
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
        case ..<950: finish()
        case ..<970:
            onTransfer("shrink") {
                $0.shrink(to: $1)
            } _: {
                $0.shrink($1, to: $2)
            }
        case ..<980: cancel()
        case ..<982: compare("cancelAll", tested.cancelAll(), model.cancelAll(of: nil))
        case ..<990:
            tested.machine.suspend()
            model.suspend()
        default: compare("resume", tested.act { $0.resume() }, model.resume())
        }
    }

    /// Shuts down, lets all work return, and counts the completions.
    mutating func windUp() {
        compare("shutDown", tested.act { $0.shutDown() }, model.shutDown())
        let ends = tested.cancelAll(.queueShutDown)
        compare("end all", ends, model.cancelAll(of: nil, .shutDown))
        join()
        for id in model.transfers.map(\.id).shuffled(using: &random) {
            compare("finish \(id)", tested.finish(id), model.finish(id))
        }
        if !hasDrained { fail("it has not drained") }
        let machine = tested.machine
        if machine.slotsInUse != 0 || !machine.transfers.isEmpty || machine.waiting.count != 0
            || tested.resources.values.contains(where: { !$0.transfers.isEmpty })
        {
            fail("something is left after the shutdown: \(tested)")
        }
        if completed.count != subscribers.count { fail("a subscriber was never completed") }
    }

    private mutating func join() {
        let number = Int.random(in: 0..<8, using: &random)
        let group = TransferGroup(
            key: CacheKey(explicit: "\(number / 2)"),
            selector: "\(number % 2)"
        )
        let host = "host\(number % 3)"
        let offset = randomBytes(0...99)
        let isOpenEnded = Bool.random(using: &random)
        let coverage = offset..<(isOpenEnded ? .max : offset + randomBytes(1...60))
        let priority = randomPriority()
        let distance = Bool.random(using: &random) ? nil : randomBytes(0...30)
        let horizon = Bool.random(using: &random) ? .max : offset + randomBytes(1...20)
        let stopsAtOthers = Bool.random(using: &random)
        let expected = model.joinable(group, offset, distance)
        let end =
            stopsAtOthers
            ? model.end(group.key, offset, coverage.upperBound) : coverage.upperBound
        let (join, joinActions) = tested.join(
            group,
            wanting: offset,
            coverage: coverage,
            host: host,
            .init(priority: priority, horizon: horizon),
            within: distance,
            stopsAtOthers: stopsAtOthers
        )
        if !model.isShutDown && join.isNew != (expected == nil) { fail("joined wrongly: \(join)") }
        if let expected, join.transfer != expected { fail("joined \(join), not \(expected)") }
        if join.isNew, join.end != end { fail("\(join) ends, not at \(end)") }
        subscribers.append(join.subscriber)
        let actions = model.join(
            join,
            group: group,
            coverage: coverage,
            host: host,
            priority: priority,
            horizon: horizon
        )
        compare("join \(join.subscriber) of \(number) at \(offset)", joinActions, actions)
    }

    private mutating func leave() {
        guard let subscriber = subscribers.suffix(40).randomElement(using: &random) else { return }
        compare("leave \(subscriber)", tested.leave(subscriber), model.leave(subscriber))
    }

    private mutating func setPriority() {
        guard let subscriber = subscribers.suffix(40).randomElement(using: &random) else { return }
        let priority = randomPriority()
        compare(
            "\(subscriber) becomes \(priority)",
            tested.setPriority(priority, of: subscriber),
            model.setPriority(priority, of: subscriber)
        )
    }

    private mutating func extend() {
        guard let subscriber = subscribers.suffix(40).randomElement(using: &random) else { return }
        let first = randomBytes(0...120)
        let range = first..<first + randomBytes(1...20)
        let isAccepted = tested[subscriber.number].extend(subscriber, for: range)
        history.append("\(subscriber) wants \(range): \(isAccepted)")
        if isAccepted != model.extend(subscriber, for: range) { fail("extended wrongly") }
    }

    /// The work of a transfer waits until its subscribers want more.
    private mutating func pause() {
        guard let id = model.transfers.randomElement(using: &random)?.id else { return }
        tested[id.number].pause(id, .atHorizon, now: MonotonicTime(nanoseconds: 0))
        model.pause(id)
        compare("pause \(id)", [], [])
    }

    /// A number of bytes near the size of blocks, and seldom a multiple of it.
    private mutating func randomBytes(_ number: ClosedRange<Int64>) -> Int64 {
        .random(in: number, using: &random) * 20_000
    }

    private mutating func cancel() {
        guard let key = model.transfers.randomElement(using: &random)?.group.key else { return }
        compare("cancel all of \(key)", tested.cancelAll(of: key), model.cancelAll(of: key))
    }

    private mutating func onTransfer(
        _ name: String,
        _ act: (inout ResourceState.Transfer, Int64) -> Void,
        _ actOnModel: (inout RequestQueueModel, TransferID, Int64) -> Void
    ) {
        guard let transfer = model.transfers.randomElement(using: &random),
            !model.waiting.contains(transfer.id)
        else { return }
        let offset = transfer.position + randomBytes(0...20)
        _ = tested[transfer.id.number].update(transfer.id) { act(&$0, offset) }
        actOnModel(&model, transfer.id, offset)
        history.append("\(name) \(transfer.id) \(offset)")
    }

    private mutating func finish() {
        guard let id = startedTransfer() else { return }
        compare("finish \(id)", tested.finish(id), model.finish(id))
    }

    private mutating func onStarted(
        _ name: String,
        _ act: (inout RequestQueueStateMachine, TransferID) -> [RequestQueueStateMachine.Action],
        _ actOnModel: (inout RequestQueueModel, TransferID) -> [Action]
    ) {
        guard let id = startedTransfer() else { return }
        compare("\(name) \(id)", tested.act { act(&$0, id) }, actOnModel(&model, id))
    }

    private mutating func startedTransfer() -> TransferID? {
        model.transfers.filter { $0.state != .queued }.randomElement(using: &random)?.id
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
        case .queue(.start(let transfer)):
            if !started.insert(transfer).inserted { fail("started twice") }
        case .queue(.cancel(let transfer)), .queue(.grant(let transfer)),
            .queue(.pause(let transfer)):
            if !started.contains(transfer) { fail("acts on a flight that never started") }
        case .queue(.drop(let transfer)):
            if started.contains(transfer) { fail("dropped a flight that had started") }
        case .queue(.drained):
            if hasDrained { fail("drained twice") }
            hasDrained = true
        }
    }

    private mutating func checkInvariants() {
        let machine = tested.machine
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
        for transfer in model.transfers where transfer.isLive {
            let id = transfer.id
            let isWanted = tested[id.number].transfers[id]?.isWanted
            if isWanted != model.isWanted(id) { fail("\(id) is wanted: \(isWanted ?? false)") }
        }
        let paused = tested.resources.values.flatMap(\.paused.keys)
        if Set(paused) != model.waiting { fail("\(paused) wait, not \(model.waiting)") }
        if machine.mayKeepConnection != model.mayKeepConnection {
            fail("wrong number of kept connections")
        }
        let known = tested.resources.values.flatMap(\.transfers)
        for (id, transfer) in known where transfer.wants.isEmpty || machine.transfers[id] == nil {
            fail("\(id) goes on without a reader, or without a queue")
        }
    }

    private mutating func fail(_ reason: String) {
        guard failure == nil else { return }
        failure = "\(reason); the last inputs: \(history.suffix(12).joined(separator: "\n"))"
    }
}
