import HTTPCaching

/// The state of the network: the last status of the monitor, and the downloads that wait.
final class NetworkGate: Sendable {
    fileprivate struct State {
        var status = NetworkStatus()
        var hasStarted = false
        /// Whether the monitor has been asked and has not said anything yet.
        var isUnheard = false
        var task: Task<Void, Never>?
        var lostHandlers: [UInt64: @Sendable (String) -> Void] = [:]
        var nextHandler: UInt64 = 0
    }

    /// After this time a download retries although the monitor reports no network: its events are
    /// hints.
    static let probeInterval = Duration.seconds(60)
    /// Waiting downloads restart spread over this time after the network has returned.
    static let wakeJitter = Duration.seconds(2)

    private let monitor: (any NetworkMonitor)?
    private let state = Guarded(State())
    /// Bumped with each status.
    let changes = ProgressSignal()

    init(_ monitor: (any NetworkMonitor)?) {
        self.monitor = monitor
    }

    deinit {
        state.withLock { $0.task }?.cancel()
    }

    var status: NetworkStatus { state.withLock { $0.status } }

    /// Starts watching, at the first call.
    func start() {
        guard let monitor, state.withLock({ $0.begins() }) else { return }
        let task = Task { [weak self] in
            for await event in monitor.events() {
                guard let self else { return }
                self.didReceive(event)
            }
            // A monitor that has ended knows nothing: treat the network as online.
            self?.didReceive(.status(NetworkStatus()))
        }
        state.withLock { $0.task = task }
    }

    func stop() {
        state.withLock { $0.task.take() }?.cancel()
    }

    /// Whether the monitor reports that `target` cannot be reached.
    func isOffline(for target: TargetURI) -> Bool {
        status.isOnline == false && !target.isLoopback
    }

    /// Whether a download that avoids costs must not send anything now.
    ///
    /// Not on a network that has them, and not before the monitor has spoken; this machine itself
    /// has none.
    func isForbidden(_ target: TargetURI, avoidingExpensive avoidsExpensive: Bool) -> Bool {
        guard avoidsExpensive, !target.isLoopback else { return false }
        return state.withLock { $0.isUnheard || $0.status.isMetered == true }
    }

    /// Bytes have arrived, so the network is not offline.
    func didReceiveBytes() {
        let wasOffline = state.withLock { state in
            guard state.status.isOnline == false else { return false }
            state.status.isOnline = nil
            return true
        }
        if wasOffline { changes.bump() }
    }

    /// Whether a download should wait.
    private func isUnusable(for target: TargetURI, avoidingExpensive: Bool) -> Bool {
        isOffline(for: target) || isForbidden(target, avoidingExpensive: avoidingExpensive)
    }

    /// Waits until `target` can be reached, or until the next attempt is due without a report.
    ///
    /// A forbidden metered network is waited out without a time limit.
    ///
    /// - Parameters:
    ///   - target: the target of the download.
    ///   - avoidsExpensive: whether it waits while the network has costs per byte.
    ///   - time: the clock.
    ///   - jitter: a number from 0 to 1 that spreads the restarts after the network's return.
    /// - Throws: `CancellationError`.
    func waitUntilUsable(
        for target: TargetURI,
        avoidingExpensive avoidsExpensive: Bool = false,
        time: any TimeSource,
        jitter: Double
    ) async throws {
        let deadline = time.monotonicTime().advanced(by: Self.probeInterval)
        // Not `self`, which the alarm would keep alive for a minute.
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
        // A monitor that has not spoken for so long knows nothing.
        state.withLock { $0.isUnheard = false }
    }

    /// Calls `handler` with each lost address, until ``removeHandler(_:)`` with the returned
    /// number.
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
            state.withLock { state in
                state.status = status
                state.isUnheard = false
            }
            changes.bump()
        case .lostAddress(let address):
            let handlers = state.withLock { Array($0.lostHandlers.values) }
            for handler in handlers { handler(address) }
        }
    }
}

extension NetworkGate.State {
    fileprivate mutating func begins() -> Bool {
        guard !hasStarted else { return false }
        hasStarted = true
        isUnheard = true
        return true
    }
}

extension TargetURI {
    /// Whether the host is this machine, which is reachable without a network.
    var isLoopback: Bool { reach == .machine }
}
