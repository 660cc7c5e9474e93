import SystemPackage
import TieredCache

#if canImport(Glibc)
import CLinuxCalls
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Where an agent learns what its machine is like.
package protocol MachineSource: Sendable {
    /// What is known now; nil where the first answers have not come yet. Asked once a second.
    func state() async -> MachineState?
}

/// This machine: its network by a monitor, battery and idleness by UPower and logind over D-Bus,
/// room by statvfs(3).
final class MachineWatch: MachineSource {
    /// After this time what has not been said is unknown.
    private static let patience = Duration.seconds(60)

    private struct State {
        var network: NetworkStatus?
        /// When the first question was asked.
        var begin: ContinuousClock.Instant?
        var task: Task<Void, Never>?
    }

    private let monitor: (any NetworkMonitor)?
    private let directory: FilePath
    private let files: IOExecutor
    private let state = Guarded(State())
    #if os(Linux)
    private let services = ServiceWatch()
    #endif

    /// Nothing is watched before the first question.
    ///
    /// - Parameters:
    ///   - monitor: that of the network.
    ///   - directory: where the cache is.
    ///   - files: threads for what blocks.
    init(monitor: (any NetworkMonitor)?, directory: FilePath, files: IOExecutor) {
        self.monitor = monitor
        self.directory = directory
        self.files = files
    }

    deinit {
        state.withLock { $0.task }?.cancel()
    }

    func state() async -> MachineState? {
        guard let (network, isLate) = network() else { return nil }
        var machine = MachineState()
        (machine.isOnline, machine.isMetered) = (network.isOnline, network.isMetered)
        machine.isStorageLow = await files.run { [self] in isStorageLow }
        #if os(Linux)
        // An actor runs on the threads that its caller prefers: these may wait for the bus.
        let answers = await withTaskExecutorPreference(files) { await services.answers() }
        guard answers.areAll || isLate else { return nil }
        (machine.isOnBattery, machine.isIdle) = (answers.isOnBattery, answers.isIdle)
        #endif
        return machine
    }

    /// The last status of the monitor, and whether nothing more is waited for; nil before its first.
    private func network() -> (NetworkStatus, isLate: Bool)? {
        state.withLock { state in
            let begin = state.begin ?? .now
            state.begin = begin
            let isLate = .now - begin >= Self.patience
            if let monitor, state.task == nil {
                state.task = Task { [weak self] in
                    for await case .status(let status) in monitor.events() {
                        guard let self else { return }
                        self.state.withLock { $0.network = status }
                    }
                    // One that has ended knows nothing.
                    self?.state.withLock { $0.network = NetworkStatus() }
                }
            }
            let status = state.network ?? (monitor == nil || isLate ? NetworkStatus() : nil)
            return status.map { ($0, isLate) }
        }
    }

    private var isStorageLow: Bool? {
        var volume = statvfs()
        guard statvfs(directory.string, &volume) == 0 else { return nil }
        let block = Int64(clamping: volume.f_frsize)
        return MachineState.isLow(
            free: Int64(clamping: volume.f_bavail).multipliedClamped(by: block),
            size: Int64(clamping: volume.f_blocks).multipliedClamped(by: block)
        )
    }
}

extension Int64 {
    fileprivate func multipliedClamped(by factor: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: factor)
        return overflow ? .max : product
    }
}

#if os(Linux)
/// What UPower and logind say.
private actor ServiceWatch {
    private let bus = MessageBus(.system, asking: [TC_BUS_POWER, TC_BUS_IDLE])

    /// What they say, and whether both have answered, or neither can be asked.
    ///
    /// Waits for a moment where an answer is on its way; a service that hangs is asked again.
    func answers() -> (isOnBattery: Bool?, isIdle: Bool?, areAll: Bool) {
        bus.process()
        let answers = [TC_BUS_POWER, TC_BUS_IDLE].map { bus.answer($0).map { $0 == 1 } }
        return (answers[0], answers[1], bus.isSettled)
    }
}
#endif
