/// A closure that is called later, unless it is cancelled before.
package struct Alarm: Sendable {
    private let callOff: @Sendable () -> Void

    fileprivate init(callOff: @escaping @Sendable () -> Void) {
        self.callOff = callOff
    }

    /// Cancels it; a call that has begun continues.
    package func cancel() { callOff() }
}

extension TimeSource {
    /// Calls `ring` after `duration`, on a thread that must not wait.
    ///
    /// Alarms of the machine's clock share one sleeping task, so that to set one and to call it
    /// off, as each exchange does, takes a lock twice and no thread. Another time source has a task
    /// sleep for each.
    ///
    /// One that would ring after a year or later is not set, as no process waits for it.
    package func alarm(
        after duration: Duration,
        _ ring: @escaping @Sendable () -> Void
    ) -> Alarm {
        guard duration < .seconds(31_536_000) else { return Alarm {} }
        if self is SystemTimeSource {
            let number = SharedAlarms.machine.set(after: duration, ring)
            return Alarm { SharedAlarms.machine.cancel(number) }
        }
        let run: @Sendable () async -> Void = {
            do {
                try await sleep(for: duration)
            } catch {
                return  // Called off.
            }
            ring()
        }
        // It sleeps before this returns, so that time driven from now on counts.
        if #available(macOS 26, iOS 26, tvOS 26, visionOS 26, watchOS 26, *) {
            let task = Task.immediate(operation: run)
            return Alarm { task.cancel() }
        }
        let task = Task(operation: run)
        return Alarm { task.cancel() }
    }
}

/// Alarms for which one task sleeps.
///
/// The task that sleeps goes on sleeping when its alarm is called off, and looks then for what has
/// been set meanwhile: alarms are hardly ever let ring, and a task for each would cost two
/// switches. An alarm that is to ring before all others has a new task sleep in place of that one.
final class SharedAlarms: Sendable {
    private struct Setting {
        var deadline: MonotonicTime
        var ring: @Sendable () -> Void

        /// Puts it off if it is late: the process was stopped, or the machine slept, and what the
        /// alarm waits for may have come meanwhile without anyone who could have looked.
        mutating func grantGrace(at now: MonotonicTime) {
            if deadline.duration(to: now) > grace { deadline = now.advanced(by: grace) }
        }
    }

    /// How late an alarm may ring, and how long one that would ring later is put off.
    private static let grace = Duration.seconds(1)

    /// The task that looks after the settings.
    private struct Lookout {
        let number: UInt64
        /// When it wakes.
        var wakesAt: MonotonicTime
        /// Nil until it is known to those that may end it.
        var task: Task<Void, Never>?
    }

    private struct State {
        var settings: [UInt64: Setting] = [:]
        var lastNumber: UInt64 = 0
        var lookout: Lookout?

        /// - Returns: what is due, and when to look next; nothing for a task that another has
        ///   overtaken.
        mutating func takeDue(
            at now: MonotonicTime,
            for number: UInt64
        ) -> (due: [Setting], next: MonotonicTime?) {
            guard lookout?.number == number else { return ([], nil) }
            for number in settings.keys {
                settings[number]?.grantGrace(at: now)
            }
            let due = settings.filter { $0.value.deadline <= now }
            for number in due.keys { settings[number] = nil }
            let next = settings.values.lazy.map(\.deadline).min()
            if let next { lookout?.wakesAt = next } else { lookout = nil }
            return (Array(due.values), next)
        }
    }

    /// Those of the machine's clock.
    static let machine = SharedAlarms(SystemTimeSource())

    private let time: any TimeSource
    private let state = Guarded(State())

    init(_ time: any TimeSource) {
        self.time = time
    }

    func set(after duration: Duration, _ ring: @escaping @Sendable () -> Void) -> UInt64 {
        let deadline = time.monotonicTime().advanced(by: max(.zero, duration))
        let (number, isFirst, overtaken) = state.withLock { state in
            state.lastNumber += 1
            state.settings[state.lastNumber] = Setting(deadline: deadline, ring: ring)
            let isFirst = state.lookout.map { deadline < $0.wakesAt } ?? true
            let overtaken = isFirst ? state.lookout?.task : nil
            if isFirst { state.lookout = Lookout(number: state.lastNumber, wakesAt: deadline) }
            return (state.lastNumber, isFirst, overtaken)
        }
        overtaken?.cancel()
        if isFirst { begin(number, deadline) }
        return number
    }

    func cancel(_ number: UInt64) {
        let setting = state.withLock { $0.settings.removeValue(forKey: number) }
        // What it owns is released outside the lock.
        withExtendedLifetime(setting) {}
    }

    private func begin(_ number: UInt64, _ deadline: MonotonicTime) {
        let task = Task { await look(from: deadline, as: number) }
        let isCurrent = state.withLock { state in
            guard state.lookout?.number == number else { return false }
            state.lookout?.task = task
            return true
        }
        // Overtaken before it could be told.
        if !isCurrent { task.cancel() }
    }

    /// Rings what is due from a deadline on, until nothing is set or another task looks earlier.
    private func look(from deadline: MonotonicTime, as number: UInt64) async {
        var deadline = deadline
        while true {
            do {
                try await time.sleep(for: time.monotonicTime().duration(to: deadline))
            } catch {
                return  // Overtaken.
            }
            let now = time.monotonicTime()
            let (due, next) = state.withLock { $0.takeDue(at: now, for: number) }
            // Outside the lock: a closure that rings may set the next alarm.
            for setting in due { setting.ring() }
            guard let next else { return }
            deadline = next
        }
    }
}
