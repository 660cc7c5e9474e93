import Testing

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct PrefetchPlannerTests {
    private typealias Action = PrefetchPlanner.Action
    private let keys = (0..<6).map { CacheKey(explicit: "item \($0)", method: "GET") }

    private func planner(_ change: (inout PrefetchOptions) -> Void = { _ in }) -> PrefetchPlanner {
        var options = PrefetchOptions()
        change(&options)
        return PrefetchPlanner(options: options)
    }

    @Test("The most likely items come first, two at once")
    func order() {
        var planner = planner()
        #expect(
            planner.didRank(keys)
                == [.start(keys[0], bytes: 800_000), .start(keys[1], bytes: 800_000)]
        )
        #expect(planner.didFinish(keys[1], bytes: 800_000) == [.start(keys[2], bytes: 800_000)])
        #expect(planner.didFail(keys[0], bytes: 0) == [.start(keys[3], bytes: 800_000)])
    }

    @Test("Nothing is fetched while what plays has little ahead, and what runs gives way")
    func playbackGoesFirst() {
        var planner = planner()
        #expect(planner.didMeasure(.duration(.seconds(20))) == [])
        #expect(planner.didRank(keys) == [])
        #expect(planner.didMeasure(.duration(.seconds(21))).count == 2)
        // Between the marks nothing changes.
        #expect(planner.didMeasure(.duration(.seconds(11))) == [])
        #expect(planner.didMeasure(.duration(.seconds(9))) == [.cancel(keys[0]), .cancel(keys[1])])
        #expect(planner.didFail(keys[0], bytes: 0) == [])
        #expect(planner.didFail(keys[1], bytes: 0) == [])
        #expect(
            planner.didMeasure(.bytes(5 << 20))
                == [.start(keys[0], bytes: 800_000), .start(keys[1], bytes: 800_000)]
        )
        #expect(planner.didMeasure(.bytes(1 << 20)).count == 2)
    }

    @Test("A swipe cancels what is no longer next and starts what is")
    func swipe() {
        var planner = planner()
        _ = planner.didRank(keys)
        #expect(planner.didRank(Array(keys[1...])) == [.cancel(keys[0])])
        // The line is free only when the cancelled one is back.
        #expect(planner.didFail(keys[0], bytes: 0) == [.start(keys[2], bytes: 800_000)])
        #expect(
            planner.didRank([keys[5], keys[4]]).sorted == [.cancel(keys[1]), .cancel(keys[2])]
        )
    }

    @Test("A more likely item takes the line from a less likely one")
    func rankingChanges() {
        var planner = planner { $0.maximumRunning = 1 }
        #expect(planner.didRank([keys[0]]) == [.start(keys[0], bytes: 800_000)])
        #expect(planner.didRank([keys[1], keys[0]]) == [.cancel(keys[0])])
        #expect(planner.didFail(keys[0], bytes: 0) == [.start(keys[1], bytes: 800_000)])
        #expect(planner.didFinish(keys[1], bytes: 10) == [.start(keys[0], bytes: 800_000)])
    }

    @Test("The budget holds for all items of a ranking")
    func budget() {
        var planner = planner {
            $0.budget = 1_500_000
            $0.maximumRunning = 1
        }
        #expect(planner.didRank(keys) == [.start(keys[0], bytes: 800_000)])
        #expect(planner.didFinish(keys[0], bytes: 800_000) == [.start(keys[1], bytes: 700_000)])
        #expect(planner.didFinish(keys[1], bytes: 700_000) == [])
        #expect(planner.bytesInUse == 1_500_000)
        // What was played leaves the ranking and gives its share back.
        #expect(planner.didRank(Array(keys[1...])) == [.start(keys[2], bytes: 800_000)])
    }

    @Test("What an item has brought counts though it failed")
    func failures() {
        var planner = planner {
            $0.budget = 2_000_000
            $0.maximumRunning = 1
        }
        #expect(planner.didRank(keys) == [.start(keys[0], bytes: 800_000)])
        #expect(planner.didFail(keys[0], bytes: 500_000) == [.start(keys[1], bytes: 800_000)])
        // More is stored of it than was fetched now, or it is not known.
        #expect(planner.didFail(keys[1], bytes: 5_000_000) == [.start(keys[2], bytes: 700_000)])
        #expect(planner.didFail(keys[2], bytes: nil) == [])
        #expect(planner.bytesInUse == 2_000_000)
    }

    @Test("What lies at the end of an item is fetched as far as the budget has room")
    func tails() {
        var planner = planner { $0.budget = 2_000_000 }
        #expect(planner.didRank(Array(keys.prefix(2))).count == 2)
        #expect(planner.didReachTail(keys[0], wanting: 1 << 20) == 400_000)
        #expect(planner.didReachTail(keys[1], wanting: 1 << 20) == 0)
        // There was none of it: the room is free again.
        #expect(planner.didFinish(keys[0], bytes: 800_000) == [])
        #expect(planner.didReachTail(keys[1], wanting: 300_000) == 300_000)
        #expect(planner.bytesInUse == 1_900_000)
        #expect(planner.didReachTail(keys[5], wanting: 300_000) == 0)
        _ = planner.didMeasure(.duration(.seconds(1)))
        #expect(planner.didReachTail(keys[1], wanting: 10) == 0)
    }

    @Test("Whatever happens, in any order, lines and budget hold", arguments: [1, 2, 3, 4])
    func anyOrder(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        var planner = planner { $0.budget = 3_000_000 }
        var running: [CacheKey: Int64] = [:]
        for step in 0..<5000 {
            var actions: [Action] = []
            switch Int.random(in: 0..<5, using: &random) {
            case 4:
                guard let (key, bytes) = running.randomElement(using: &random) else { continue }
                running[key] = bytes + planner.didReachTail(key, wanting: 1 << 20)
            case 0:
                actions = planner.didRank(Array(keys.shuffled(using: &random).prefix(4)))
            case 1:
                let ahead = Int.random(in: 0...40, using: &random)
                actions = planner.didMeasure(.duration(.seconds(ahead)))
            case 2:
                guard let (key, bytes) = running.randomElement(using: &random) else { continue }
                running[key] = nil
                actions = planner.didFinish(key, bytes: bytes)
            default:
                guard let (key, bytes) = running.randomElement(using: &random) else { continue }
                running[key] = nil
                let brought = Bool.random(using: &random) ? bytes : nil
                actions = planner.didFail(key, bytes: brought)
            }
            for case .start(let key, let bytes) in actions {
                #expect(
                    running.updateValue(bytes, forKey: key) == nil,
                    "seed \(seed), step \(step)"
                )
            }
            #expect(running.count <= 2, "seed \(seed), step \(step)")
            #expect(planner.bytesInUse <= 3_000_000, "seed \(seed), step \(step)")
        }
    }
}

extension [PrefetchPlanner.Action] {
    fileprivate var sorted: Self { sorted { "\($0)" < "\($1)" } }
}
