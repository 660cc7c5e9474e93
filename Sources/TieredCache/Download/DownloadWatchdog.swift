import HTTPCaching

/// Ends an exchange when no byte came for some time while one was being waited for, or when the
/// address that it goes out from is gone.
///
/// The time counts only while armed: a sink that writes slowly, or a reader that pauses, is not
/// the origin's silence. Arming costs one lock, so it is done around every pull.
final class DownloadWatchdog: Sendable {
    /// Why the exchange was ended.
    enum Decision: Hashable, Sendable {
        /// No byte came for the time allowed.
        case silent
        /// This machine no longer has the address.
        case addressLost
    }

    /// Where the request's content is.
    private enum Upload {
        /// There is none, or the answer has come.
        case none
        /// The client has to bring the next bytes; meanwhile the origin has nothing to answer.
        case atClient
        /// The origin has to take them, and to answer after the last ones.
        case atOrigin
    }

    private struct State {
        var armedAt: MonotonicTime?
        var upload = Upload.none
        var decision: Decision?
        var localAddress: String?
        var alarm: Alarm?
        /// Ends the exchange, where the transport has said how.
        var cancelExchange: (@Sendable () -> Void)?
        var isOver = false
    }

    private let timeout: Duration
    private let time: any TimeSource
    private let state = Guarded(State())
    private let decisions = ProgressSignal()

    init(timeout: Duration, time: any TimeSource) {
        self.timeout = timeout
        self.time = time
    }

    /// Why the exchange was ended; nil if it was not by this object.
    var decision: Decision? { state.withLock { $0.decision } }

    /// From now on the origin is expected to send; returns the present.
    @discardableResult
    func arm() -> MonotonicTime {
        let now = time.monotonicTime()
        state.withLock { $0.armedAt = now }
        return now
    }

    /// It has sent, or nothing is wanted of it; returns the present.
    @discardableResult
    func disarm() -> MonotonicTime {
        state.withLock { $0.armedAt = nil }
        return time.monotonicTime()
    }

    /// Content goes out, piece by piece, as fast as origin and client let it: each piece that moves
    /// gives the origin all of its time again.
    ///
    /// - Parameter upload: the content.
    /// - Returns: the same, watched until the answer's head comes.
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

    /// The answer's head has come: only its own bytes count from now on.
    func didReceiveHead() {
        state.withLock { $0.upload = .none }
    }

    /// The address that the exchange goes out from, if the transport knows it.
    func didLearn(localAddress: String?) {
        state.withLock { $0.localAddress = localAddress }
    }

    /// The machine has lost an address; ends the exchange unless it uses another one.
    func didLoseAddress(_ address: String, _ target: TargetURI) {
        guard !target.isLoopback else { return }
        let isOurs = state.withLock { state in
            guard state.localAddress ?? address == address, state.decision == nil else {
                return false
            }
            state.decision = .addressLost
            return true
        }
        if isOurs { didDecide() }
    }

    /// Takes the transport's means to end the exchange from any thread; uses it at once if the time
    /// has run out.
    func attach(_ cancelExchange: @escaping @Sendable () -> Void) {
        let isLate = state.withLock { state in
            state.cancelExchange = cancelExchange
            return state.decision != nil
        }
        if isLate { cancelExchange() }
    }

    /// Runs `body`, whose exchange is ended by what was attached when the time runs out or the
    /// address is lost.
    func watchAttached<Value>(_ body: () async -> Value) async -> Value {
        begin()
        defer { end() }
        return await body()
    }

    /// Runs `body` in a task of its own, and cancels that when the time runs out or the address is
    /// lost.
    func watch<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value {
        begin()
        defer { end() }
        return await withTaskGroup(of: Value?.self) { group in
            group.addTask { await body() }
            group.addTask {
                await self.waitForDecision()
                return nil
            }
            // The first to end ends the other; the value comes from the body in any case.
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
        // What it owns is released outside the lock.
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

    /// Ends the exchange if its time has run out, else looks again when that may be.
    private func look() {
        let now = time.monotonicTime()
        let remaining = state.withLock { state -> Duration? in
            guard !state.isOver, state.decision == nil else { return nil }
            // Not armed: the next arming cannot run out before a whole timeout has passed.
            guard let armedAt = state.armedAt, state.upload != .atClient else { return timeout }
            let remaining = timeout - armedAt.duration(to: now)
            guard remaining > .zero else {
                state.decision = .silent
                return nil
            }
            return remaining
        }
        if let remaining { return setAlarm(after: remaining) }
        if decision != nil { didDecide() }
    }

    private func didDecide() {
        state.withLock { $0.isOver ? nil : $0.cancelExchange }?()
        decisions.bump()
    }

    /// Returns when there is a decision, or when cancelled.
    private func waitForDecision() async {
        while !Task.isCancelled {
            let seen = decisions.version
            guard decision == nil else { return }
            await decisions.wait(after: seen)
        }
    }
}
