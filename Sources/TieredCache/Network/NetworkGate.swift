import HTTPCaching

/// The engine's view of the network: what the monitor said last, and who waits for better.
final class NetworkGate: Sendable {
    fileprivate struct State {
        var status = NetworkStatus()
        var hasStarted = false
        var task: Task<Void, Never>?
        var lostHandlers: [UInt64: @Sendable (String) -> Void] = [:]
        var nextHandler: UInt64 = 0
    }

    /// After this time a download tries again though nobody has said that it may: signals are
    /// hints.
    static let probeInterval = Duration.seconds(60)
    /// Those who waited for the network start again within this time of its return, spread out.
    static let wakeJitter = Duration.seconds(2)

    private let monitor: (any NetworkMonitor)?
    private let state = Guarded(State())
    /// Bumped with every status.
    let changes = ProgressSignal()

    init(_ monitor: (any NetworkMonitor)?) {
        self.monitor = monitor
    }

    deinit {
        state.withLock { $0.task }?.cancel()
    }

    var status: NetworkStatus { state.withLock { $0.status } }

    /// Begins to watch, at the first call.
    func start() {
        guard let monitor, state.withLock({ $0.begins() }) else { return }
        let task = Task { [weak self] in
            for await event in monitor.events() {
                guard let self else { return }
                self.didReceive(event)
            }
            // A monitor that has ended knows nothing any more: fail open.
            self?.didReceive(.status(NetworkStatus()))
        }
        state.withLock { $0.task = task }
    }

    func stop() {
        state.withLock { $0.task.take() }?.cancel()
    }

    /// Whether `target` cannot be reached now, as far as anybody knows.
    func isOffline(for target: TargetURI) -> Bool {
        status.isOnline == false && !target.isLoopback
    }

    /// Bytes have arrived, whatever the monitor says.
    func didReceiveBytes() {
        let wasOffline = state.withLock { state in
            guard state.status.isOnline == false else { return false }
            state.status.isOnline = nil
            return true
        }
        if wasOffline { changes.bump() }
    }

    /// Whether a download had better wait.
    private func isUnusable(for target: TargetURI, avoidingExpensive: Bool) -> Bool {
        isOffline(for: target) || (avoidingExpensive && status.isMetered == true)
    }

    /// Waits until `target` can be reached, or it is time to try all the same.
    ///
    /// A metered network that is forbidden is waited out for as long as it takes.
    ///
    /// - Parameters:
    ///   - target: where the download goes.
    ///   - avoidsExpensive: whether it waits while the network charges for bytes.
    ///   - time: what the waits are measured by.
    ///   - jitter: a number from 0 to 1 that places the restart after the network's return.
    /// - Throws: `CancellationError`.
    func waitUntilUsable(
        for target: TargetURI,
        avoidingExpensive avoidsExpensive: Bool = false,
        time: any TimeSource,
        jitter: Double
    ) async throws {
        let deadline = time.monotonicTime().advanced(by: Self.probeInterval)
        let changed = changes
        let alarm = Task {
            do {
                try await time.sleep(for: Self.probeInterval)
                changed.bump()
            } catch {
                // Cancelled: the network came first.
            }
        }
        defer { alarm.cancel() }
        while time.monotonicTime() < deadline {
            let seen = changed.version
            guard isUnusable(for: target, avoidingExpensive: avoidsExpensive) else {
                let share = jitter.isNaN ? 1 : min(1, max(0, jitter))
                return try await time.sleep(for: Self.wakeJitter * share)
            }
            try Task.checkCancellation()
            await changed.wait(after: seen)
        }
        try Task.checkCancellation()
    }

    /// Calls `handler` with each address that is lost, until the returned number is given back.
    func onLostAddress(_ handler: @escaping @Sendable (String) -> Void) -> UInt64 {
        state.withLock { state in
            state.nextHandler += 1
            state.lostHandlers[state.nextHandler] = handler
            return state.nextHandler
        }
    }

    func removeHandler(_ number: UInt64) {
        state.withLock { _ = $0.lostHandlers.removeValue(forKey: number) }
    }

    private func didReceive(_ event: NetworkEvent) {
        switch event {
        case .status(let status):
            state.withLock { $0.status = status }
            changes.bump()
        case .lostAddress(let address):
            let handlers = state.withLock { Array($0.lostHandlers.values) }
            for handler in handlers { handler(address) }
        }
    }
}

extension NetworkGate.State {
    fileprivate mutating func begins() -> Bool {
        defer { hasStarted = true }
        return !hasStarted
    }
}

extension TargetURI {
    /// Whether the host is this machine, which can be reached without any network.
    var isLoopback: Bool { reach == .machine }
}
