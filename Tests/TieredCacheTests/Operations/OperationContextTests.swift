import Testing

@testable import TieredCache

@Suite("Priority relay", .timeLimit(.minutes(10)))
struct PriorityRelayTests {
    private final class Listener: Sendable {
        private let heard = Guarded<[RequestPriority]>([])

        var all: [RequestPriority] { heard.withLock { $0 } }

        func hear(_ priority: RequestPriority) {
            heard.withLock { $0.append(priority) }
        }
    }

    @Test
    func `A new target hears the present priority, then each change once`() {
        let relay = PriorityRelay(.prefetch)
        let (first, second) = (Listener(), Listener())
        relay.priority = .normal
        relay.setTarget { first.hear($0) }
        relay.priority = .high
        relay.priority = .high
        relay.setTarget { second.hear($0) }
        relay.priority = .playing
        relay.setTarget(nil)
        relay.priority = .background
        #expect(first.all == [.normal, .high])
        #expect(second.all == [.high, .playing])
    }

    @Test
    func `A change made by the target itself is handed over too`() {
        let relay = PriorityRelay(.normal)
        let listener = Listener()
        relay.setTarget { [weak relay] priority in
            listener.hear(priority)
            if priority == .high { relay?.priority = .playing }
        }
        relay.priority = .high
        #expect(listener.all == [.normal, .high, .playing])
    }

    @Test
    func `Whatever the interleaving, the last word is the last heard`() async {
        for _ in 0..<50 {
            let relay = PriorityRelay(.background)
            let listener = Listener()
            relay.setTarget { listener.hear($0) }
            await withTaskGroup(of: Void.self) { group in
                for priority in RequestPriority.allCases {
                    group.addTask { relay.priority = priority }
                }
            }
            #expect(listener.all.last == relay.priority)
        }
    }
}
