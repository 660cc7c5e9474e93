import CTieredCache
import Dispatch
import Logging
import TieredCache

/// Hands lines of the log to a function of the program, one at a time, on a thread of its own.
///
/// States: `idle` → `delivering` (a line comes) → `idle` (none is left); `close` leads to `closed`
/// from each, after the lines that wait.
final class LogBridge: Sendable {
    private struct Line {
        let level: CInt
        let text: String
    }

    private struct State {
        var lines: [Line] = []
        var isDelivering = false
        var isClosed = false
        /// Reached when the last line has been delivered.
        var quiet: Milestone?
    }

    /// What a program gave to be called back with; passed on and never looked into.
    private struct Target: @unchecked Sendable {
        // Unchecked: the header says that the function is called on a thread of the library.
        let function: tiered_log_fn
        let context: UnsafeMutableRawPointer?
    }

    private static let maximumLines = 1024

    private let target: Target
    private let state = Guarded(State())
    private let executor = IOExecutor(threads: 1, name: "tiered-log")
    /// The least severe level that is wanted.
    let level: Logger.Level

    /// - Returns: nil where nothing is to be logged, and where there is no thread for it: a function
    ///   that hangs would hold one of Swift's.
    init?(_ options: tiered_options) {
        guard let function = options.log, let level = Logger.Level(options.log_level) else {
            return nil
        }
        target = Target(function: function, context: options.log_context)
        self.level = level
        guard !executor.isWithoutThreads else { return nil }
    }

    func log(_ level: Logger.Level, _ text: String) {
        let begins = state.withLock { state in
            guard !state.isClosed, state.lines.count < Self.maximumLines else { return false }
            state.lines.append(Line(level: level.number, text: text))
            defer { state.isDelivering = true }
            return !state.isDelivering
        }
        if begins { Task(executorPreference: executor) { self.deliver() } }
    }

    private func deliver() {
        while let line = next() { target.function(target.context, line.level, line.text) }
    }

    private func next() -> Line? {
        let (line, quiet) = state.withLock { state -> (Line?, Milestone?) in
            guard !state.lines.isEmpty else {
                state.isDelivering = false
                return (nil, state.quiet)
            }
            return (state.lines.removeFirst(), nil)
        }
        quiet?.reach()
        return line
    }

    /// Takes no more lines, and waits until those that wait were delivered; call it once.
    ///
    /// - Parameters:
    ///   - latest: when lines that still wait are dropped.
    ///   - end: the latest return, also where the function hangs in a call.
    func close(lines latest: DispatchTime, until end: DispatchTime) {
        let quiet: Milestone? = state.withLock { state in
            state.isClosed = true
            guard state.isDelivering else { return nil }
            state.quiet = Milestone()
            return state.quiet
        }
        guard let quiet, !quiet.wait(until: latest) else { return }
        state.withLock { $0.lines = [] }
        quiet.wait(until: end)
    }
}

extension Logger.Level {
    /// - Returns: nil for `TIERED_LOG_NONE`.
    fileprivate init?(_ number: Int32) {
        switch number {
        case ...0: return nil
        case 1: self = .error
        case 2: self = .warning
        case 3: self = .info
        case 4: self = .debug
        default: self = .trace
        }
    }

    fileprivate var number: CInt {
        switch self {
        case .critical, .error: CInt(TIERED_LOG_ERROR)
        case .warning: CInt(TIERED_LOG_WARNING)
        case .notice, .info: CInt(TIERED_LOG_INFO)
        case .debug: CInt(TIERED_LOG_DEBUG)
        case .trace: CInt(TIERED_LOG_TRACE)
        }
    }
}
