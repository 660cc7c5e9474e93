import Testing

@testable import TieredCache

/// The kernel of this machine; whether it is online is not for a test to say.
@Suite(.timeLimit(.minutes(10)))
struct RouteMonitorTests {
    @Test("The present status comes first, and watching ends with the consumer")
    func status() async throws {
        var events = RouteMonitor().events().makeAsyncIterator()
        // Nil where the kernel does not allow to ask, which counts as online.
        guard let first = await events.next() else { return }
        guard case .status(let status) = first else {
            Issue.record("\(first) before the status")
            return
        }
        #expect(status.isOnline != nil)
    }
}
