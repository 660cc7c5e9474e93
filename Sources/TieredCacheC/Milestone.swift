import Dispatch

/// Something that happens once; any number of threads may wait for it.
final class Milestone: Sendable {
    private let group = DispatchGroup()

    /// Creates one that has not happened.
    init() {
        group.enter()
    }

    /// It has happened; call it once.
    func reach() { group.leave() }

    /// Blocks the calling thread until it has happened, or the deadline has passed.
    ///
    /// - Returns: whether it has happened.
    @discardableResult
    func wait(until deadline: DispatchTime) -> Bool { group.wait(timeout: deadline) == .success }
}
