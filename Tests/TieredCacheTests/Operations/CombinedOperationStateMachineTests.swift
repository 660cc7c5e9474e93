import Testing

@testable import TieredCache

@Suite("Combined operation, decisions", .timeLimit(.minutes(10)))
struct CombinedOperationStateMachineTests {
    @Test
    func `A lookup that answers completes`() {
        var machine = CombinedOperationStateMachine()
        #expect(machine.didStart() == .lookUp)
        #expect(machine.didStart() == .ignore)
        #expect(machine.didLookUp(isFinal: true) == .complete)
        #expect(machine.isFinished)
        #expect(machine.didCancel() == .ignore)
        #expect(machine.didStart() == .ignore)
    }

    @Test
    func `A lookup that does not answer leads to a download`() {
        var machine = CombinedOperationStateMachine()
        #expect(machine.didStart() == .lookUp)
        #expect(machine.didLookUp(isFinal: false) == .download)
        #expect(!machine.isFinished)
        #expect(machine.didDownload() == .complete)
        #expect(machine.didCancel() == .ignore)
    }

    /// In each state: before the start, looking up, downloading.
    @Test(arguments: 0..<3)
    func `A cancel is final`(state: Int) {
        var machine = CombinedOperationStateMachine()
        if state > 0 { #expect(machine.didStart() == .lookUp) }
        if state > 1 { #expect(machine.didLookUp(isFinal: false) == .download) }
        #expect(machine.didCancel() == .completeCancelled)
        #expect(machine.didCancel() == .ignore)
        #expect(machine.didStart() == .ignore)
        #expect(machine.didLookUp(isFinal: false) == .ignore)
        #expect(machine.didLookUp(isFinal: true) == .ignore)
        #expect(machine.didDownload() == .ignore)
    }
}
