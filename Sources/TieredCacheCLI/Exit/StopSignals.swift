import Dispatch
import ServiceLifecycle

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// SIGINT and SIGTERM, which ask a server to stop, from the creation of this to ``end()``.
///
/// The process exits ``grace`` after the first, even if something hangs, and at once at the second.
final class StopSignals: Sendable {
    /// How long a server may take to stop: less than the documented five seconds.
    static let grace = DispatchTimeInterval.milliseconds(4800)

    private let asked: AsyncStream<Never>
    // Any thread may cancel a source of Dispatch, whose types do not say so.
    private nonisolated(unsafe) let source: any DispatchSourceRead

    init() throws {
        let (asked, continuation) = AsyncStream<Never>.makeStream()
        self.asked = asked
        let received = SignalFlag()
        source = Interruption.watch(try Interruption.signals(), grace: Self.grace) {
            if received.raise() { Self.leave(because: "stopped at the second signal") }
            continuation.finish()
        } expired: {
            Self.leave(because: "stopped, though not everything had ended")
        }
    }

    /// Watches no more: once everything has ended, the cache as well as the services.
    func end() { source.cancel() }

    /// Runs services until they end, or stops them when a signal asks for it, or has before.
    func run(_ group: ServiceGroup) async throws {
        let stopping = Task { [asked] in
            for await _ in asked {}
            await group.triggerGracefulShutdown()
        }
        defer { stopping.cancel() }
        try await group.run()
    }

    private static func leave(because words: String) -> Never {
        // The other end of standard error may be what hangs.
        StandardError.writeWithoutWaiting("tieredcache: \(words); what is on disk is sound")
        _exit(ExitStatus.done.rawValue)
    }
}
