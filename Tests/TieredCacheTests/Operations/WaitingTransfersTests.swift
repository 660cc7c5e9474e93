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
            waiting.insert(transfer(UInt64(index)), kind: .queued, host: "h", priority: priority)
        }
        return waiting
    }

    private func drain(_ waiting: inout WaitingTransfers) -> [UInt64] {
        var order: [UInt64] = []
        while let next = waiting.popNext(includesQueued: true) { order.append(next.number) }
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
        waiting.insert(transfer(7), kind: .resuming, host: "h", priority: .normal)
        #expect(drain(&waiting) == [1, 7, 0])
    }

    @Test
    func `A transfer that is moved takes the place that its arrival gives it`() {
        var waiting = makeWaiting([.prefetch, .high, .high])
        waiting.move(transfer(0), to: .high)
        waiting.move(transfer(2), to: .background)
        #expect(drain(&waiting) == [0, 1, 2])
    }

    @Test
    func `While nothing new may start, only what was stalled resumes`() {
        var waiting = makeWaiting([.playing])
        waiting.insert(transfer(7), kind: .resuming, host: "h", priority: .background)
        #expect(waiting.popNext(includesQueued: false) == transfer(7))
        #expect(waiting.popNext(includesQueued: false) == nil)
        #expect(waiting.count == 1)
    }

    @Test
    func `The oldest has its turn after so many overtakes, though urgent ones keep coming`() {
        var waiting = makeWaiting([.background], overtakes: 4)
        var starts: [UInt64] = []
        for number in 1...10 {
            waiting.insert(transfer(UInt64(number)), kind: .queued, host: "h", priority: .high)
            starts.append(waiting.popNext(includesQueued: true)?.number ?? .max)
        }
        #expect(starts == [1, 2, 3, 4, 0, 5, 6, 7, 8, 9])
    }

    @Test
    func `What is playing gives way to the oldest, but eight times more seldom`() {
        var waiting = makeWaiting([.background], overtakes: 2)
        for number in 1...20 {
            waiting.insert(transfer(UInt64(number)), kind: .queued, host: "h", priority: .playing)
        }
        let numbers = (1...20).map { UInt64($0) }
        #expect(drain(&waiting) == numbers[..<16] + [0] + numbers[16...])
    }

    @Test
    func `The turns of a host that is seldom open are not used up by others`() {
        var waiting = WaitingTransfers(maximumOvertakes: 3)
        waiting.insert(transfer(0), kind: .queued, host: "busy", priority: .background)
        waiting.setHost("busy", isOpen: false)
        var starts: [UInt64] = []
        for number in 1...8 {
            // While the host is closed, others have their turn and are the oldest.
            waiting.insert(
                transfer(UInt64(100 + number)),
                kind: .queued,
                host: "b",
                priority: .high
            )
            #expect(waiting.popNext(includesQueued: true) == transfer(UInt64(100 + number)))
            // Whenever it opens, something more urgent has come for it.
            waiting.insert(transfer(UInt64(number)), kind: .queued, host: "busy", priority: .high)
            waiting.setHost("busy", isOpen: true)
            starts.append(waiting.popNext(includesQueued: true)?.number ?? .max)
            waiting.setHost("busy", isOpen: false)
        }
        #expect(starts == [1, 2, 3, 0, 4, 5, 6, 7])
    }
}
