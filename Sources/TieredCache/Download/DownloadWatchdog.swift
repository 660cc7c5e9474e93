import HTTPCaching

/// Ends an exchange if an awaited byte does not arrive in time, or if the machine has lost the
/// address of its connection.
///
/// The time counts only while armed: a slow sink, or a pausing reader, is not the origin's silence.
/// Arming costs one lock, so it is done around every read.
final class DownloadWatchdog: Sendable {
    /// Why the exchange was ended.
    enum Decision: Hashable, Sendable {
        /// No byte arrived within the timeout.
        case silent
        /// This machine no longer has the address.
        case addressLost
    }

    /// The side that holds up the request's content.
    private enum Upload {
        /// Neither: there is no content, or the response has arrived.
        case none
        /// The client has to send the next bytes; meanwhile the origin cannot respond.
        case atClient
        /// The origin has to take them, and to respond after the last ones.
        case atOrigin
    }

    private struct State {
        var armedAt: MonotonicTime?
        var upload = Upload.none
        var decision: Decision?
        var localAddress: String?
        var alarm: Alarm?
        /// The owner of the directory, while it is asked in the place of the origin.
        var owner: OwnerPresence?
        /// Ends the exchange, if the transport has supplied a way.
        var cancelExchange: (@Sendable () -> Void)?
        var isOver = false

        /// - Returns: the time until the next look, nil if none is left; and the owner, if nothing
        ///   has come for as long as it may take for a sign.
        func remaining(
            of timeout: Duration,
            at now: MonotonicTime
        ) -> (Duration?, due: OwnerPresence?) {
            guard !isOver, decision == nil else { return (nil, nil) }
            let interval = min(timeout, owner?.patience ?? timeout)
            // Not armed: the next arming cannot time out before a whole interval has passed.
            guard let armedAt, upload != .atClient else { return (interval, nil) }
            let waited = armedAt.duration(to: now)
            guard waited < timeout else { return (nil, nil) }
            guard waited >= interval else { return (interval - waited, nil) }
            return (min(timeout - waited, interval), owner)
        }
    }

    private let timeout: Duration
    private let time: any TimeSource
    private let state = Guarded(State())
    private let decisions = ProgressSignal()

    init(timeout: Duration, time: any TimeSource) {
        self.timeout = timeout
        self.time = time
    }

    /// Why the exchange was ended; nil if this object has not ended it.
    var decision: Decision? { state.withLock { $0.decision } }

    /// Starts expecting bytes from the origin; returns the current time.
    @discardableResult
    func arm() -> MonotonicTime {
        let now = time.monotonicTime()
        state.withLock { $0.armedAt = now }
        return now
    }

    /// Stops expecting bytes; returns the current time.
    @discardableResult
    func disarm() -> MonotonicTime {
        state.withLock { $0.armedAt = nil }
        return time.monotonicTime()
    }

    /// Watches content as it is sent: each piece that moves restarts the origin's timeout.
    ///
    /// - Parameter upload: the content.
    /// - Returns: the same content, watched until the head of the response arrives.
    func watching(_ upload: UploadBody) -> UploadBody {
        state.withLock { $0.upload = .atOrigin }
        return UploadBody(length: upload.length) { [self] in
            state.withLock { if $0.upload == .atOrigin { $0.upload = .atClient } }
            defer { didUpload(at: time.monotonicTime()) }
            return try await upload.next()
        }
    }

    private func didUpload(at now: MonotonicTime) {
        state.withLock { state in
            guard state.upload == .atClient else { return }
            state.upload = .atOrigin
            if state.armedAt != nil { state.armedAt = now }
        }
    }

    /// The head of the response has arrived: only its own bytes count from now on.
    ///
    /// - Parameter localAddress: that of the exchange, if the transport knows it.
    func didReceiveHead(from localAddress: String?) {
        state.withLock { state in
            state.armedAt = nil
            state.upload = .none
            state.localAddress = localAddress
        }
    }

    /// The machine has lost an address; ends the exchange unless it uses another one.
    func didLoseAddress(_ address: String, target: TargetURI) {
        guard !target.isLoopback else { return }
        let isOurs = state.withLock { state in
            guard state.localAddress ?? address == address, state.decision == nil else {
                return false
            }
            state.decision = .addressLost
            return true
        }
        // Outside the lock: ending the exchange calls the transport.
        if isOurs { didDecide() }
    }

    /// Sets the transport's closure that ends the exchange from any thread; calls it at once if the
    /// timeout has passed.
    func attach(_ cancelExchange: @escaping @Sendable () -> Void) {
        let isLate = state.withLock { state in
            state.cancelExchange = cancelExchange
            return state.decision != nil
        }
        if isLate { cancelExchange() }
    }

    /// Sees to it that the owner of the directory is there while nothing comes; nil for an exchange
    /// with the origin.
    func watch(_ owner: OwnerPresence?) {
        let late = state.withLock { state in
            state.owner = owner
            return owner == nil ? nil : state.alarm.take()
        }
        late?.cancel()
        if let owner { setAlarm(after: owner.patience) }
    }

    /// Runs `body`; the attached closure ends its exchange after the timeout or the loss of the
    /// address.
    func watchAttached<Value>(_ body: () async -> Value) async -> Value {
        begin()
        defer { end() }
        return await body()
    }

    /// Runs `body` in a task, and cancels that after the timeout or the loss of the address.
    func watch<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value {
        begin()
        defer { end() }
        return await withTaskGroup(of: Value?.self) { group in
            group.addTask { await body() }
            group.addTask {
                await self.waitForDecision()
                return nil
            }
            // The first child to end ends the other; the value comes from the body in any case.
            var value: Value?
            for await result in group {
                group.cancelAll()
                value = value ?? result
            }
            guard let value else { preconditionFailure("the body of a watched exchange ended") }
            return value
        }
    }

    // MARK: The alarm

    private func begin() { setAlarm(after: timeout) }

    private func end() {
        let (alarm, cancelExchange) = state.withLock { state in
            state.isOver = true
            return (state.alarm.take(), state.cancelExchange.take())
        }
        alarm?.cancel()
        // Its captures are released outside the lock.
        withExtendedLifetime(cancelExchange) {}
    }

    private func setAlarm(after wait: Duration) {
        let alarm = time.alarm(after: wait) { self.look() }
        let isOver = state.withLock { state in
            if !state.isOver { state.alarm = alarm }
            return state.isOver
        }
        if isOver { alarm.cancel() }
    }

    /// Ends the exchange if its time has passed or the owner is silent, otherwise checks again when
    /// that may be.
    private func look() {
        let now = time.monotonicTime()
        let (remaining, owner) = state.withLock { $0.remaining(of: timeout, at: now) }
        if let remaining, owner?.look() ?? true { return setAlarm(after: remaining) }
        let isSilent = state.withLock { state in
            guard !state.isOver, state.decision == nil else { return false }
            state.decision = .silent
            return true
        }
        guard isSilent else { return }
        // The silence may be the owner's: then the origin is asked, with a timeout of its own.
        state.withLock { $0.owner }?.giveUp()
        didDecide()
    }

    private func didDecide() {
        state.withLock { $0.isOver ? nil : $0.cancelExchange }?()
        decisions.bump()
    }

    /// Returns when there is a decision, or when cancelled.
    private func waitForDecision() async { await decisions.wait(while: { decision == nil }) }
}
