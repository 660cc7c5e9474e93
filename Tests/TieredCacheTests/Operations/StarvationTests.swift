import Testing

@testable import TieredCache

/// Fairness as a property: whatever arrives, each waiting transfer has a turn.
@Suite("Starvation", .timeLimit(.minutes(10)))
struct StarvationTests {
    @Test(
        "Every request runs in the end, though more urgent ones never stop coming",
        arguments: 0..<60
    )
    func everyRequestRuns(seed: UInt64) {
        var simulation = Simulation(seed: seed)
        simulation.run()
        #expect(simulation.waiting.isEmpty, "seed \(seed): \(simulation.waiting) never ran")
    }
}

/// A queue under a load that it cannot carry, whose urgent part alone would fill every slot.
private struct Simulation {
    private var random: SplitMix
    private var machine: RequestQueueStateMachine
    private let hosts: Int
    private var running: [TransferID] = []
    private var stalled: [TransferID] = []
    /// Those that wait for a first byte, which comes by and by.
    private var yielded: [TransferID] = []
    private var urgent = 0
    private var arrivals: UInt64 = 0
    /// Those that were there from the start and have not run.
    private(set) var waiting: Set<TransferID> = []

    init(seed: UInt64) {
        random = SplitMix(seed: seed)
        hosts = .random(in: 1...5, using: &random)
        machine = RequestQueueStateMachine(
            limits: .init(
                maximumDownloads: .random(in: 1...6, using: &random),
                maximumPerHost: .random(in: 1...3, using: &random),
                maximumOvertakes: .random(in: 1...8, using: &random)
            )
        )
    }

    mutating func run() {
        // So that the next one has to wait.
        for _ in 0..<24 { join([.playing, .high]) }
        let patient = (0..<30).map { _ in join([.background, .prefetch, .normal]) }
        waiting = Set(patient).subtracting(running)
        // A turn comes at least at every 64th start of a host, and all of 30 wait for turns.
        for _ in 0..<100_000 where !waiting.isEmpty { step() }
    }

    private mutating func step() {
        // Each that ends is replaced by one more urgent, so that a backlog of them stays.
        if let index = running.indices.randomElement(using: &random) {
            let transfer = running.remove(at: index)
            if Int.random(in: 0..<8, using: &random) == 0 {
                stalled.append(transfer)
                perform(machine.didStall(transfer))
            } else {
                perform(machine.didFinish(transfer))
            }
        }
        let hasFirstByte = running.isEmpty || Int.random(in: 0..<2, using: &random) == 0
        if !yielded.isEmpty, hasFirstByte { perform(machine.didUnstall(yielded.removeFirst())) }
        if stalled.count > 4 { perform(machine.didUnstall(stalled.removeFirst())) }
        while urgent < 12 { join([.playing, .high]) }
    }

    @discardableResult
    private mutating func join(_ priorities: [RequestPriority]) -> TransferID {
        arrivals += 1
        let priority = priorities.randomElement(using: &random) ?? .high
        let transfer = TransferID(number: arrivals)
        let host = "host\(Int.random(in: 0..<hosts, using: &random))"
        let resources = [ObjectIdentifier(Int.self), ObjectIdentifier(UInt.self)]
        let resource = resources.randomElement(using: &random) ?? .same
        guard
            let actions = machine.enter(
                transfer,
                host: host,
                resource: resource,
                priority: priority
            )
        else {
            preconditionFailure("not shut down")
        }
        if priority >= .high {
            urgent += 1
            urgentTransfers.insert(transfer)
        }
        perform(actions)
        return transfer
    }

    private var urgentTransfers: Set<TransferID> = []

    private mutating func perform(_ actions: [RequestQueueStateMachine.Action]) {
        for action in actions {
            switch action {
            case .start(let transfer), .grant(let transfer):
                running.append(transfer)
                waiting.remove(transfer)
                if urgentTransfers.remove(transfer) != nil { urgent -= 1 }
            case .pause(let transfer):
                running.removeAll { $0 == transfer }
                if machine.transfers[transfer]?.state == .yielded {
                    yielded.append(transfer)
                } else {
                    stalled.append(transfer)
                }
            case .cancel, .drop, .drained:
                break
            }
        }
    }
}
