import Dispatch

/// Holds threads, not tasks, until a test lets them go.
final class ThreadGate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    /// Lets everybody pass from now on.
    func open() { semaphore.signal() }

    /// Blocks until the gate is open; gives up after two minutes, so that a test fails, not hangs.
    func wait() {
        _ = semaphore.wait(timeout: .now() + 120)
        semaphore.signal()
    }
}
