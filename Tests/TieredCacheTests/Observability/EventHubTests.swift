import Testing

@testable import TieredCache

@Suite("Event hub", .timeLimit(.minutes(10)))
struct EventHubTests {
    private let hub = EventHub()

    private func post(_ range: Range<Int64>) {
        for number in range { hub.post(MediaCache.Event(key: nil, .memoryPressure(limit: number))) }
    }

    private static func limits(_ events: AsyncStream<MediaCache.Event>) async -> [Int64] {
        await events.reduce(into: []) { limits, event in
            if case .memoryPressure(let limit) = event.kind { limits.append(limit) }
        }
    }

    @Test
    func `No consumer listens, so no event is made`() {
        func make() -> MediaCache.Event {
            Issue.record("made an event without a consumer")
            return MediaCache.Event(key: nil, .removed)
        }
        #expect(!hub.hasListeners)
        hub.post(make())
    }

    @Test
    func `All listeners hear everything in order from when they came`() async {
        let first = hub.events()
        post(0..<3)
        let second = hub.events()
        post(3..<5)
        hub.finish()
        #expect(await Self.limits(first) == [0, 1, 2, 3, 4])
        #expect(await Self.limits(second) == [3, 4])
    }

    @Test
    func `A slow listener loses the oldest events and nothing else`() async {
        let slow = hub.events(capacity: 2)
        let quick = hub.events()
        post(0..<10)
        hub.finish()
        #expect(await Self.limits(slow) == [8, 9])
        #expect(await Self.limits(quick).count == 10)
    }

    @Test
    func `A listener that stops is forgotten`() async {
        func listenToOne() async {
            let events = hub.events()
            post(0..<1)
            for await _ in events { return }
        }
        await listenToOne()
        #expect(!hub.hasListeners)
        let task = Task { await Self.limits(hub.events()) }
        task.cancel()
        #expect(await task.value.isEmpty)
        #expect(!hub.hasListeners)
        post(1..<2)
    }

    @Test
    func `A finished hub ends new streams at once`() async {
        hub.finish()
        #expect(await Self.limits(hub.events()).isEmpty)
        #expect(!hub.hasListeners)
    }

    @Test
    func `Listeners come and go while events are posted`() async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask { post(0..<500) }
                group.addTask {
                    for _ in 0..<50 {
                        let task = Task { for await _ in hub.events(capacity: 4) {} }
                        await Task.yield()
                        task.cancel()
                        await task.value
                    }
                }
            }
        }
        #expect(!hub.hasListeners)
    }
}
