#if os(Linux) && DEBUG && HTTPClient
/// What is counted of a walk.
enum Cost: String, CaseIterable {
    /// Locks taken: of `Guarded` values, of shards of memory, of files (`KeyedLock`).
    case locks
    /// Tasks made.
    case tasks
    /// Objects made of our classes, those of test doubles left out.
    case instances
    /// Jobs queued for a thread: a task is started, or goes on.
    case handovers
    /// Calls of the file system, closing left out.
    case calls
}

/// The costs of a walk, as they are or as they may be at most.
struct Budget: Hashable, Sendable {
    var locks = 0
    var tasks = 0
    var instances = 0
    var handovers = 0
    var calls = 0

    subscript(cost: Cost) -> Int {
        get {
            switch cost {
            case .locks: locks
            case .tasks: tasks
            case .instances: instances
            case .handovers: handovers
            case .calls: calls
            }
        }
        set {
            switch cost {
            case .locks: locks = newValue
            case .tasks: tasks = newValue
            case .instances: instances = newValue
            case .handovers: handovers = newValue
            case .calls: calls = newValue
            }
        }
    }
}

/// What was counted of a walk, and where.
struct WalkCount: Sendable {
    var costs = Budget()
    /// How often, by what is locked, made, queued or called; tasks have no names.
    var parts: [Cost: [String: Int]] = [:]

    init() {}

    init(_ parts: [Cost: [String: Int]], tasks: Int) {
        self.parts = parts
        for (cost, names) in parts { costs[cost] = names.values.reduce(0, +) }
        costs.tasks = tasks
    }

    /// Of each cost that of the round in which it was least.
    ///
    /// A round may have more than the walk: what is done now and then, by the clock.
    static func least(_ rounds: [WalkCount]) -> WalkCount {
        var least = WalkCount()
        for cost in Cost.allCases {
            guard let round = rounds.min(by: { $0.costs[cost] < $1.costs[cost] }) else { continue }
            least.costs[cost] = round.costs[cost]
            least.parts[cost] = round.parts[cost]
        }
        return least
    }

    /// The costs of each of the `steps` steps that a longer walk has more; the parts are those of all
    /// these steps.
    ///
    /// Rounded down: what is done by the clock comes now and then in a walk that takes long.
    func each(of steps: Int, in longer: WalkCount) -> WalkCount {
        var each = WalkCount()
        for cost in Cost.allCases {
            let more = longer.costs[cost] - costs[cost]
            each.costs[cost] = max(0, more) / steps
            let few = parts[cost] ?? [:]
            for (name, count) in longer.parts[cost] ?? [:] where count > few[name] ?? 0 {
                each.parts[cost, default: [:]][name] = count - (few[name] ?? 0)
            }
        }
        return each
    }

    /// The parts of a cost, the largest first.
    func story(of cost: Cost) -> String {
        (parts[cost] ?? [:]).filter { $0.value > 0 }
            .sorted { ($0.value, $1.key) > ($1.value, $0.key) }
            .map { "\n  \($0.value) \($0.key)" }
            .joined()
    }

    /// A row of a table.
    func row(_ name: String) -> String {
        let numbers = Cost.allCases.map { " \(costs[$0]) |" }.joined()
        return "| \(name) |\(numbers)"
    }
}
#endif
