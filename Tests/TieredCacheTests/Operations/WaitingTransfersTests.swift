import Foundation
import Testing

@testable import TieredCache

@Suite("Waiting transfers", .timeLimit(.minutes(10)))
struct WaitingTransfersTests {
    private func transfer(_ number: UInt64) -> TransferID { TransferID(number: number) }

    private func makeWaiting(
        _ priorities: [RequestPriority],
        overtakes: Int = 100
    ) -> WaitingTransfers {
        var waiting = WaitingTransfers(maximumOvertakes: overtakes)
        for (index, priority) in priorities.enumerated() {
            waiting.insert(UInt64(index), priority)
        }
        return waiting
    }

    private func drain(_ waiting: inout WaitingTransfers) -> [UInt64] {
        var order: [UInt64] = []
        while let next = waiting.popNext() { order.append(next) }
        return order
    }

    @Test
    func `Higher priorities go first, arrivals in order within one`() {
        var waiting = makeWaiting([.prefetch, .high, .normal, .high, .playing, .background])
        #expect(drain(&waiting) == [4, 1, 3, 2, 0, 5])
        #expect(waiting.count == 0)
    }

    @Test
    func `A transfer that resumes goes before the queued ones of its priority alone`() {
        var waiting = makeWaiting([.normal, .high])
        waiting.insert(7, .normal, resumes: true)
        #expect(drain(&waiting) == [1, 7, 0])
    }

    @Test
    func `A transfer that is moved takes the place that its arrival gives it`() {
        var waiting = makeWaiting([.prefetch, .high, .high])
        waiting.move(
            transfer(0),
            from: .init(.prefetch),
            to: .init(.high)
        )
        waiting.move(
            transfer(2),
            from: .init(.high),
            to: .init(.background)
        )
        #expect(drain(&waiting) == [0, 1, 2])
    }

    @Test
    func `While nothing new may start, only what was stalled resumes`() {
        var waiting = makeWaiting([.playing])
        waiting.insert(7, .background, resumes: true)
        #expect(waiting.popNext(includesQueued: false) == 7)
        #expect(waiting.popNext(includesQueued: false) == nil)
        #expect(waiting.count == 1)
    }

    @Test
    func `The oldest has its turn after so many overtakes, though urgent ones keep coming`() {
        var waiting = makeWaiting([.background], overtakes: 4)
        var starts: [UInt64] = []
        for number in 1...10 {
            waiting.insert(UInt64(number), .high)
            starts.append(waiting.popNext() ?? .max)
        }
        #expect(starts == [1, 2, 3, 4, 0, 5, 6, 7, 8, 9])
    }

    @Test
    func `What is playing gives way to the oldest, but eight times more seldom`() {
        var waiting = makeWaiting([.background], overtakes: 2)
        for number in 1...20 {
            waiting.insert(UInt64(number), .playing)
        }
        let numbers = (1...20).map { UInt64($0) }
        #expect(drain(&waiting) == numbers[..<16] + [0] + numbers[16...])
    }

    @Test
    func `The turns of a host that is seldom open are not used up by others`() {
        var waiting = WaitingTransfers(maximumOvertakes: 3)
        waiting.insert(0, .background, host: "busy")
        var starts: [UInt64] = []
        for number in 1...8 {
            // While the host is closed, others have their turn and are the oldest.
            waiting.insert(UInt64(100 + number), .high, host: "b")
            #expect(waiting.popNext(closed: ["busy"]) == UInt64(100 + number))
            // Whenever it opens, something more urgent has come for it.
            waiting.insert(UInt64(number), .high, host: "busy")
            starts.append(waiting.popNext() ?? .max)
        }
        #expect(starts == [1, 2, 3, 0, 4, 5, 6, 7])
    }

    @Test
    func `Of one priority the resource with the fewest slots goes first`() {
        let (film, song) = (NSObject(), NSObject())
        var waiting = makeWaiting([])
        for number in 0..<3 { waiting.insert(UInt64(number), .normal, of: film) }
        waiting.insert(3, .normal, of: song)
        waiting.insert(4, .prefetch, of: song)
        waiting.insert(5, .normal, of: song)
        var slots = [ObjectIdentifier(film): 1]
        var starts: [UInt64] = []
        while let next = waiting.popNext(slots: slots) {
            starts.append(next)
            slots[ObjectIdentifier(next < 3 ? film : song), default: 0] += 1
        }
        #expect(starts == [3, 0, 5, 1, 2, 4])
    }

    @Test
    func `Six of one priority go before the first, whose resource has slots, and then that one`() {
        let film = NSObject()
        var waiting = makeWaiting([])
        waiting.insert(0, .playing, of: film)
        var starts: [UInt64] = []
        for number in 1...10 {
            waiting.insert(UInt64(number), .playing, host: number % 2 == 0 ? "h" : "other")
            starts.append(waiting.popNext(slots: [ObjectIdentifier(film): 1]) ?? .max)
        }
        #expect(starts == [1, 2, 3, 4, 5, 6, 0, 7, 8, 9])
    }

    @Test
    func `What overtakes the oldest of a host counts no more once nothing of the host waits`() {
        var waiting = makeWaiting([], overtakes: 1)
        waiting.insert(0, .background, host: "busy")
        waiting.insert(1, .high, host: "busy")
        waiting.insert(2, .background, host: "old")
        #expect(waiting.popNext() == 1)
        waiting.remove(transfer(0), from: .init(.background, host: "busy"))
        // The oldest of all has its turn.
        #expect(waiting.popNext() == 2)
        waiting.insert(3, .background, host: "busy")
        waiting.insert(4, .high, host: "busy")
        #expect(waiting.popNext() == 4)
    }

    @Test
    func `A download in many segments leaves another one its share of the slots`() async throws {
        let queue = QueueBench(limits: .init(maximumDownloads: 2))
        let works = (0..<4).map { _ in ControlledWork() }
        let segments = (0..<3).map { number in
            let start = Int64(number) * 1_000
            return queue.join("film", works[number], at: start, coverage: start..<start + 1_000)
        }
        let song = queue.join("song", works[3])
        works[0].finish()
        try await segments[0].value()
        let states = Dictionary(
            uniqueKeysWithValues: queue.snapshot().transfers.map { ($0.id, $0.state) }
        )
        #expect(song.transfer.flatMap { states[$0] } == .running)
        #expect(segments[2].transfer.flatMap { states[$0] } == .queued)
        queue.cancelAll()
    }
}

extension WaitingTransfers {
    fileprivate mutating func insert(
        _ number: UInt64,
        _ priority: RequestPriority,
        resumes: Bool = false,
        host: String = "h",
        of resource: AnyObject? = nil
    ) {
        insert(
            TransferID(number: number),
            in: Line(priority, resumes: resumes, host: host),
            resource: resource.map(ObjectIdentifier.init) ?? .same
        )
    }

    fileprivate mutating func popNext(
        includesQueued: Bool = true,
        closed: Set<String> = [],
        slots: [ObjectIdentifier: Int] = [:]
    ) -> UInt64? {
        let next = popNext(
            includesQueued: includesQueued,
            isOpen: { !closed.contains($0) },
            slots: { slots[$0] ?? 0 }
        )
        return next?.number
    }
}

extension WaitingTransfers.Line {
    fileprivate init(_ priority: RequestPriority, resumes: Bool = false, host: String = "h") {
        self.init(host: host, lane: .init(priority, resumes: resumes))
    }
}

extension ObjectIdentifier {
    /// The resource of transfers that are all of one.
    static let same = ObjectIdentifier(WaitingTransfers.self)
}
