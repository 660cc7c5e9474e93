import CLinuxCalls
import Dispatch
import SystemPackage
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Turns SIGINT and SIGTERM into a cancellation, so that a command unwinds and keeps received
/// bytes.
enum Interruption {
    /// How long unwinding may take before the process exits; connections to the origin must be
    /// closed within 500 ms of the signal.
    static let grace = DispatchTimeInterval.milliseconds(450)

    /// Runs `body` and cancels it when a signal arrives.
    ///
    /// - Parameters:
    ///   - hint: how to continue, for the message.
    ///   - prepare: called when a signal arrives, before anything is cancelled.
    ///   - body: the interruptible work.
    /// - Returns: the result of `body`.
    /// - Throws: the error of `body`; ``CommandFailure`` with ``ExitStatus/interrupted`` if a
    ///   signal arrived, regardless of the result of `body`.
    static func guarding<Result: Sendable>(
        hint: String? = nil,
        prepare: @escaping @Sendable () -> Void = {},
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let received = SignalFlag()
        let signals = try signals()
        let task = Task(operation: body)
        let source = watch(signals, grace: grace) {
            received.raise()
            prepare()
            task.cancel()
        } expired: {
            OutputFile.discardAll()
            // Not `exit`, which flushes standard output: its reader may be what hangs.
            _exit(ExitStatus.interrupted.rawValue)
        }
        defer { source.cancel() }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        guard !received.isRaised else { throw interrupted(hint) }
        return try result.get()
    }

    private static func interrupted(_ hint: String?) -> CommandFailure {
        let words = "interrupted; what arrived is kept"
        return CommandFailure(.interrupted, message: hint.map { "\(words), \($0)" } ?? words)
    }

    /// The descriptor at which SIGINT and SIGTERM arrive from now on, a byte each.
    static func signals() throws -> CInt {
        let signals = tc_watch_stop_signals()
        guard signals >= 0 else {
            throw CommandFailure(
                .localFailed,
                message: "cannot watch signals: \(Errno(rawValue: -signals))"
            )
        }
        return signals
    }

    /// Calls `action` for each of ``signals()``, and `expired` when the grace after one is over.
    ///
    /// - Returns: the source; it watches until it is cancelled.
    static func watch(
        _ signals: CInt,
        grace: DispatchTimeInterval,
        action: @escaping @Sendable () -> Void,
        expired: @escaping @Sendable () -> Void
    ) -> any DispatchSourceRead {
        let queue = DispatchQueue(label: "tieredcache.signals")
        let source = DispatchSource.makeReadSource(fileDescriptor: signals, queue: queue)
        source.setEventHandler {
            var byte: UInt8 = 0
            while read(signals, &byte, 1) == 1 {
                action()
                queue.asyncAfter(deadline: .now() + grace, execute: expired)
            }
        }
        source.resume()
        return source
    }
}

/// Whether a signal has arrived.
final class SignalFlag: Sendable {
    /// Signals within this time of the first one, in nanoseconds, count as the same: `timeout`
    /// sends one to the process and one to its group, as a terminal and a wrapper do.
    static let echo: UInt64 = 300_000_000

    private let first = Guarded<DispatchTime?>(nil)

    var isRaised: Bool { first.withLock { $0 != nil } }

    /// - Parameter now: when the signal arrived.
    /// - Returns: whether it is a second signal, and not an echo of the first.
    @discardableResult
    func raise(at now: DispatchTime = .now()) -> Bool {
        first.withLock { first in
            guard let known = first else {
                first = now
                return false
            }
            let (elapsed, isEarlier) = now.uptimeNanoseconds.subtractingReportingOverflow(
                known.uptimeNanoseconds
            )
            return !isEarlier && elapsed >= Self.echo
        }
    }
}
