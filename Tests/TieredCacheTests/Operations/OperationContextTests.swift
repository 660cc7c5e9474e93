import Testing

@testable import TieredCache

@Suite("Operation context", .timeLimit(.minutes(10)))
struct OperationContextTests {
    private final class Listener: Sendable {
        private let heard = Guarded<[RequestPriority]>([])

        var all: [RequestPriority] { heard.withLock { $0 } }

        func hear(_ priority: RequestPriority) {
            heard.withLock { $0.append(priority) }
        }
    }

    @Test
    func `A new target hears the present priority, then each change once`() {
        let context = OperationContext(priority: .prefetch)
        let (first, second) = (Listener(), Listener())
        context.priority = .normal
        context.forwardPriority { first.hear($0) }
        context.priority = .high
        context.priority = .high
        context.forwardPriority { second.hear($0) }
        context.priority = .playing
        context.forwardPriority(to: nil)
        context.priority = .background
        #expect(first.all == [.normal, .high])
        #expect(second.all == [.high, .playing])
    }

    @Test
    func `A change made by the target itself is handed over too`() {
        let context = OperationContext(priority: .normal)
        let listener = Listener()
        context.forwardPriority { [weak context] priority in
            listener.hear(priority)
            if priority == .high { context?.priority = .playing }
        }
        context.priority = .high
        #expect(listener.all == [.normal, .high, .playing])
    }

    @Test
    func `Whatever the interleaving, the last word is the last heard`() async {
        for _ in 0..<50 {
            let context = OperationContext(priority: .background)
            let listener = Listener()
            context.forwardPriority { listener.hear($0) }
            await withTaskGroup(of: Void.self) { group in
                for priority in RequestPriority.allCases {
                    group.addTask { context.priority = priority }
                }
            }
            #expect(listener.all.last == context.priority)
        }
    }
}
