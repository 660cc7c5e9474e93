import Histogram

/// One way to do an operation: ours, or a peer's.
struct Contender {
    let name: String
    /// Does the operation `count` times.
    let run: (_ count: Int) -> Void
    /// The part of a round's operations that it does; a slow peer does fewer.
    let share: Double

    init(_ name: String, share: Double = 1, run: @escaping (Int) -> Void) {
        self.name = name
        self.run = run
        self.share = share
    }
}

/// An operation that is compared: the first contender is ours, the second the one that the target
/// speaks of, any further ones are for information.
struct Row {
    let name: String
    /// The ratio of ours to the peer's time that the design allows.
    let target: Double?
    /// Operations per contender and round.
    let count: Int
    let contenders: [Contender]
}

/// What a row's rounds gave.
struct Outcome {
    let row: Row
    /// Nanoseconds per operation by contender, one element per round.
    let times: [[Double]]
    /// Latency of batches of 16 operations of ours, in nanoseconds per operation.
    let latency: Histogram<UInt64>

    /// The median over rounds of ours divided by the peer's time in the same round.
    func ratio(to contender: Int) -> Double {
        zip(times[0], times[contender]).map { $0 / $1 }.median
    }
}

/// Runs contenders side by side and prints ratios.
///
/// Our own harness rather than a benchmark package's: what is asked for is a ratio, and on a shared
/// machine it only means something if both sides ran within the same few milliseconds. Each round
/// runs every contender once, in an order that turns with the round; the ratio is taken per round
/// and its median reported, so a disturbance spoils one round and not the result.
struct Harness {
    let rounds: Int

    func measure(_ row: Row) -> Outcome {
        for contender in row.contenders { contender.run(count(of: contender, in: row)) }
        var times = [[Double]](repeating: [], count: row.contenders.count)
        for round in 0..<rounds {
            for turn in row.contenders.indices {
                let index = (turn + round) % row.contenders.count
                times[index].append(time(row.contenders[index], in: row))
            }
        }
        return Outcome(row: row, times: times, latency: latency(of: row))
    }

    /// Runs sides that say themselves what a run of theirs took, in an order that turns.
    ///
    /// - Parameters:
    ///   - sides: ours first.
    ///   - run: runs one side once.
    /// - Returns: by side what it said, an element a round; the first run of each is left out.
    /// - Throws: what a run throws.
    func turns<Side, Said>(_ sides: [Side], _ run: (Side) throws -> Said) throws -> [[Said]] {
        for side in sides { _ = try run(side) }
        var said = [[Said]](repeating: [], count: sides.count)
        for round in 0..<rounds {
            for turn in sides.indices {
                let index = (turn + round) % sides.count
                said[index].append(try run(sides[index]))
            }
        }
        return said
    }

    private func count(of contender: Contender, in row: Row) -> Int {
        max(1, Int(Double(row.count) * contender.share))
    }

    private func time(_ contender: Contender, in row: Row) -> Double {
        let count = count(of: contender, in: row)
        let start = ContinuousClock.now
        contender.run(count)
        return (ContinuousClock.now - start).nanoseconds / Double(count)
    }

    /// Single operations are shorter than reading a clock, so they are timed by sixteens.
    private func latency(of row: Row) -> Histogram<UInt64> {
        var histogram = Histogram<UInt64>(highestTrackableValue: 10_000_000_000)
        let batch = row.count >= 1000 ? 16 : 1
        for _ in 0..<min(20_000, max(20, row.count / batch)) {
            let start = ContinuousClock.now
            row.contenders[0].run(batch)
            let time = (ContinuousClock.now - start).nanoseconds / Double(batch)
            histogram.record(UInt64(max(0, time)))
        }
        return histogram
    }
}

extension Outcome {
    /// Makes the outcome of a row whose sides have said themselves what a run took.
    ///
    /// - Parameters:
    ///   - name: the row's name.
    ///   - target: the ratio that the design allows.
    ///   - contenders: the names of the sides, ours first.
    ///   - times: nanoseconds per operation by side, one element per round.
    ///   - latencies: nanoseconds of single operations of ours.
    init(
        _ name: String,
        target: Double,
        contenders: [String],
        times: [[Double]],
        latencies: [UInt64]
    ) {
        var latency = Histogram<UInt64>(highestTrackableValue: 10_000_000_000)
        for time in latencies { latency.record(time) }
        let row = Row(
            name: name,
            target: target,
            count: 1,
            contenders: contenders.map { Contender($0) { _ in } }
        )
        self.init(row: row, times: times, latency: latency)
    }
}

extension Duration {
    var nanoseconds: Double {
        Double(components.seconds) * 1e9 + Double(components.attoseconds) / 1e9
    }
}

extension [Double] {
    var median: Double {
        let sorted = sorted()
        guard !sorted.isEmpty else { return .nan }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}

/// Keeps the optimiser from removing work with an unused result.
@inline(never)
func blackHole<Value>(_ value: Value) {}
