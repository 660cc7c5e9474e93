import Testing

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct ReadAheadPlannerTests {
    private let start = MonotonicTime(nanoseconds: 0)

    @Test("A first look costs the head of the file, a look elsewhere one block")
    func firstLooks() {
        var planner = ReadAheadPlanner()
        let head = planner.didMiss(0, count: 100, expectedEnd: nil, now: start)
        #expect(head.range == 0..<256 << 10)
        let place: Int64 = 1 << 30
        let far = planner.didMiss(place, count: 100, expectedEnd: nil, now: start)
        #expect(far.range == place..<place + 65_536)
        #expect(planner.numbers.count == 2)
    }

    @Test("A consumer that says how far it reads is taken at its word")
    func certainReads() {
        var planner = ReadAheadPlanner()
        let order = planner.didMiss(1000, count: 100, expectedEnd: 900_000, now: start)
        #expect(order.range == 1000..<900_000)
        let ahead = planner.didRead(1000..<900_000, expectedEnd: 900_000, now: start)
        #expect(ahead == nil)
    }

    @Test("Bytes fetched ahead are at most a quarter of those read in a row, and a block")
    func aheadIsBounded() {
        var planner = ReadAheadPlanner()
        var planned = planner.didMiss(0, count: 1, expectedEnd: nil, now: start).range.upperBound
        var position: Int64 = 0
        while position < 100 << 20 {
            let end = position + 32_768
            if position >= planned {
                planned =
                    planner.didMiss(position, count: 1, expectedEnd: nil, now: start)
                    .range.upperBound
            }
            if let order = planner.didRead(position..<end, expectedEnd: nil, now: start) {
                #expect(order.range.lowerBound == max(planned, end))
                planned = order.range.upperBound
            }
            #expect(planned - end <= max(256 << 10, end / 4 + 65_536))
            #expect(planned - end <= 8 << 20)
            position = end
        }
        #expect(planned - position > 2 << 20)
    }

    /// A consumer that takes 40 MB as fast as they come, over a path of this latency and rate.
    ///
    /// - Returns: the seconds that it took, the number of requests, and the maximum that was
    ///   fetched ahead, as a share of what was read by then.
    private func transfer(
        latency: Double,
        rate: Double
    ) -> (seconds: Double, requests: Int, ahead: Double) {
        var planner = ReadAheadPlanner()
        var (now, isFree, requests, ahead) = (latency, 0.0, 0, 0.0)
        /// The end of the open request.
        var limit: Int64 = 0
        /// When the bytes of each order begin and end to come.
        var orders: [(range: Range<Int64>, began: Double, ended: Double)] = []
        func ask(_ order: ReadAheadPlanner.FetchRequest?) {
            guard let order else { return }
            let isOpen = order.range.lowerBound < limit
            if !isOpen { (requests, limit) = (requests + 1, order.limit) }
            let began = max(isOpen ? now : now + latency, isFree)
            isFree = began + Double(order.range.count) / rate
            orders.append((order.range, began, isFree))
        }
        func instant() -> MonotonicTime { MonotonicTime(nanoseconds: Int64(now * 1e9)) }
        var position: Int64 = 0
        while position < 40_000_000 {
            if orders.last.map({ position >= $0.range.upperBound }) ?? true {
                ask(planner.didMiss(position, count: 1, expectedEnd: nil, now: instant()))
            }
            let end = position + 16_384
            for order in orders where order.range.contains(end - 1) {
                let arrival = order.began + Double(end - order.range.lowerBound) / rate
                now = max(now, arrival)
            }
            ask(planner.didRead(position..<end, expectedEnd: nil, now: instant()))
            position = end
            if position > 1 << 20, let planned = orders.last?.range.upperBound {
                ahead = max(ahead, Double(planned - end) / Double(end))
            }
            orders.removeAll { $0.range.upperBound <= position }
        }
        return (now, requests, ahead)
    }

    @Test(
        "A path of any latency is kept full, by nine requests",
        arguments: [(0.1, 20e6), (0.001, 20e6), (0.04, 2.5e6)]
    )
    func paths(latency: Double, rate: Double) {
        let transfer = transfer(latency: latency, rate: rate)
        #expect(transfer.seconds <= 40_000_000 / rate * 1.1 + 9 * latency)
        #expect(transfer.requests <= 9)
        #expect(transfer.ahead <= 0.3)
    }

    @Test("The first requests are for what is wanted now, a further one for what follows, too")
    func limits() {
        var planner = ReadAheadPlanner()
        let first = planner.didMiss(0, count: 1, expectedEnd: nil, now: start)
        #expect(first.limit == first.range.upperBound)
        let elsewhere = planner.didMiss(1 << 30, count: 1, expectedEnd: nil, now: start)
        #expect(elsewhere.limit == elsewhere.range.upperBound)
        var position = elsewhere.range.lowerBound
        var order: ReadAheadPlanner.FetchRequest?
        while order?.limit != .max, position < 2 << 30 {
            let next = position + 32_768
            order = planner.didRead(position..<next, expectedEnd: nil, now: start) ?? order
            position = next
        }
        #expect(position - elsewhere.range.lowerBound > 2 << 20)
        #expect(position - elsewhere.range.lowerBound < 3 << 20)
        let certain = planner.didMiss(2 << 30, count: 1, expectedEnd: 3 << 30, now: start)
        #expect(certain.limit == certain.range.upperBound && certain.range.count == 4 << 20)
    }

    @Test("Where bytes are stored in a row, a consumer that begins behind them reads on")
    func goesOn() {
        let place: Int64 = 3 << 20
        var planner = ReadAheadPlanner()
        let little = planner.didMiss(
            place,
            count: 1,
            expectedEnd: nil,
            storedBefore: 1 << 20,
            now: start
        )
        #expect(little.range == place..<place + 320 << 10)
        #expect(little.limit == little.range.upperBound)
        planner = ReadAheadPlanner()
        let much = planner.didMiss(
            place,
            count: 1,
            expectedEnd: nil,
            storedBefore: place,
            now: start
        )
        #expect(much.range == place..<place + 832 << 10)
        #expect(much.limit == .max)
        planner = ReadAheadPlanner()
        _ = planner.begin(place..<place + 65_536, storedBefore: place, now: start)
        let ahead = planner.didRead(place..<place + 65_536, expectedEnd: nil, now: start)
        #expect(ahead?.range.lowerBound == place + 65_536)
        #expect(ahead?.limit == .max)
    }

    @Test(
        "Random seeks fetch at most 1.3 of what is read",
        arguments: 1...20
    )
    func seeks(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        let (latency, rate) = (0.1, 20e6)
        var planner = ReadAheadPlanner()
        var (now, isFree, fetched, read) = (0.0, 0.0, 0.0, 0.0)
        for _ in 0..<24 {
            var orders: [(range: Range<Int64>, began: Double)] = []
            func ask(_ order: ReadAheadPlanner.FetchRequest?) {
                guard let range = order?.range else { return }
                let began = max(now + latency, isFree)
                isFree = began + Double(range.count) / rate
                fetched += Double(range.count)
                orders.append((range, began))
            }
            func instant() -> MonotonicTime { MonotonicTime(nanoseconds: Int64(now * 1e9)) }
            var position = Int64.random(in: 0..<1 << 30, using: &random)
            let end = position + Int64.random(in: 300_000...1_200_000, using: &random)
            read += Double(end - position)
            while position < end {
                if orders.last.map({ position >= $0.range.upperBound }) ?? true {
                    ask(planner.didMiss(position, count: 1, expectedEnd: nil, now: instant()))
                }
                let next = min(end, position + 16_384)
                for order in orders where order.range.contains(next - 1) {
                    let arrival = order.began + Double(next - order.range.lowerBound) / rate
                    now = max(now, arrival)
                }
                ask(planner.didRead(position..<next, expectedEnd: nil, now: instant()))
                position = next
            }
            isFree = now
        }
        #expect(fetched <= read * 1.3, "seed \(seed): \(fetched / read)")
    }

    @Test("A slow consumer is not run ahead of by more than ten seconds")
    func slowConsumers() {
        var planner = ReadAheadPlanner()
        _ = planner.didMiss(0, count: 1, expectedEnd: nil, now: start)
        var position: Int64 = 0
        for second in 1...1000 {
            let now = start.advanced(by: .seconds(second))
            let end = position + 16_000
            let order = planner.didRead(position..<end, expectedEnd: nil, now: now)
            if let order { #expect(order.range.upperBound - end <= 160_000 + 65_536) }
            position = end
        }
    }

    @Test("Two places far apart are followed at the same time")
    func interleavedStreams() {
        var planner = ReadAheadPlanner()
        var fetched: Int64 = 0
        var ends: [Int64] = [0, 500 << 20]
        var planned = ends
        for _ in 0..<2000 {
            for stream in ends.indices {
                let offset = ends[stream]
                if offset >= planned[stream] {
                    let order = planner.didMiss(offset, count: 1, expectedEnd: nil, now: start)
                    fetched += order.range.upperBound - max(planned[stream], offset)
                    planned[stream] = order.range.upperBound
                }
                let read = offset..<offset + 20_000
                if let order = planner.didRead(read, expectedEnd: nil, now: start) {
                    fetched += Int64(order.range.count)
                    planned[stream] = order.range.upperBound
                }
                ends[stream] = read.upperBound
            }
        }
        #expect(planner.numbers.count == 2)
        #expect(Double(fetched) <= 80_000_000 * 1.3)
    }

    @Test("What may not be fetched ahead is not fetched with what is missed either")
    func limitOfMisses() {
        var options = ReadAheadPlanner.Options()
        options.maximumAhead = 0
        var planner = ReadAheadPlanner(options: options)
        var position: Int64 = 0
        while position < 64 << 20 {
            let order = planner.didMiss(position, count: 1, expectedEnd: nil, now: start)
            #expect(order.range.count == (position < 256 << 10 ? 256 << 10 : 65_536))
            let ahead = planner.didRead(order.range, expectedEnd: nil, now: start)
            #expect(ahead == nil)
            position = order.range.upperBound
        }
    }

    @Test("A new place takes the one least in use")
    func windowsAreFew() {
        var planner = ReadAheadPlanner()
        let first = planner.didMiss(0, count: 1, expectedEnd: nil, now: start)
        for place in 1...3 {
            _ = planner.didMiss(Int64(place) << 30, count: 1, expectedEnd: nil, now: start)
        }
        _ = planner.didRead(0..<10, expectedEnd: nil, now: start)
        _ = planner.didMiss(9 << 30, count: 1, expectedEnd: nil, now: start)
        #expect(planner.numbers.count == 4)
        #expect(planner.numbers.contains(first.window))
    }

    @Test("Offsets at the end of all numbers do not overflow")
    func extremes() {
        var planner = ReadAheadPlanner()
        let order = planner.didMiss(.max - 1, count: .max, expectedEnd: nil, now: start)
        #expect(order.range == .max - 1..<Int64.max)
        let ahead = planner.didRead(.max - 1..<Int64.max, expectedEnd: nil, now: start)
        #expect(ahead == nil)
    }
}

extension ReadAheadPlanner {
    /// In front of the byte nothing is stored.
    fileprivate mutating func didMiss(
        _ offset: Int64,
        count: Int64,
        expectedEnd end: Int64?,
        now: MonotonicTime
    ) -> FetchRequest {
        didMiss(offset, count: count, expectedEnd: end, storedBefore: 0, now: now)
    }
}
