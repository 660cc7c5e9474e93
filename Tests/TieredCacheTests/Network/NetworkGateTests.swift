import HTTPCaching
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct NetworkGateTests {
    private func target() throws -> TargetURI { try TargetURI("https://far.example/a") }

    private func started(_ monitor: ScriptedNetworkMonitor) -> NetworkGate {
        let gate = NetworkGate(monitor)
        gate.start()
        return gate
    }

    @Test("Nothing is known: online; offline never holds back what is on this machine")
    func failsOpen() async throws {
        let target = try target()
        #expect(!NetworkGate(nil).isOffline(for: target))
        let gate = started(ScriptedNetworkMonitor(NetworkStatus(isOnline: false)))
        await gate.waitUntil { $0.isOnline == false }
        #expect(gate.isOffline(for: target))
        for text in ["http://127.0.0.1:80/", "http://[::1]/", "http://localhost:8080/"] {
            #expect(!gate.isOffline(for: try TargetURI(text)))
        }
        gate.didReceiveBytes()
        #expect(!gate.isOffline(for: target))
    }

    @Test("A waiting download goes on with the network, after a jitter; or after a minute, to try")
    func waits() async throws {
        let monitor = ScriptedNetworkMonitor(NetworkStatus(isOnline: false))
        let (gate, time, target) = (started(monitor), ManualTimeSource(), try target())
        await gate.waitUntil { $0.isOnline == false }
        let first = Task { try await gate.waitUntilUsable(for: target, time: time, jitter: 0.5) }
        await time.waitForSleepers(1)
        let start = time.monotonicTime()
        monitor.report(NetworkStatus(isOnline: true))
        // The jitter's sleep comes before the probe's, which is cancelled on the way out.
        await time.waitForSleepers(2)
        #expect(time.advanceToNextDeadline() == .seconds(1))
        try await first.value
        #expect(start.duration(to: time.monotonicTime()) == .seconds(1))

        monitor.report(NetworkStatus(isOnline: false))
        await gate.waitUntil { $0.isOnline == false }
        let second = Task { try await gate.waitUntilUsable(for: target, time: time, jitter: 0.5) }
        await time.waitForSleepers(1)
        time.advance(by: NetworkGate.probeInterval)
        try await second.value
    }

    private func waiting(
        for target: TargetURI,
        at gate: NetworkGate,
        _ time: ManualTimeSource
    ) -> Task<Void, any Error> {
        Task {
            try await gate.waitUntilUsable(
                for: target,
                avoidingExpensive: true,
                time: time,
                jitter: 0
            )
        }
    }

    @Test("A metered network is no network to a request that forbids it")
    func metered() async throws {
        let monitor = ScriptedNetworkMonitor(NetworkStatus(isOnline: true, isMetered: true))
        let (gate, time, target) = (started(monitor), ManualTimeSource(), try target())
        await gate.waitUntil { $0.isMetered == true }
        try await gate.waitUntilUsable(for: target, time: time, jitter: 0)
        let waiting = waiting(for: target, at: gate, time)
        await time.waitForSleepers(1)
        monitor.report(NetworkStatus(isOnline: true, isMetered: false))
        try await waiting.value
    }

    @Test("Before the monitor has spoken nothing is sent that must not cost, but to this machine")
    func unheard() async throws {
        let (gate, time, target) = (NetworkGate(SilentMonitor()), ManualTimeSource(), try target())
        gate.start()
        #expect(gate.isForbidden(target, avoidingExpensive: true))
        #expect(!gate.isForbidden(target, avoidingExpensive: false))
        #expect(!gate.isForbidden(try TargetURI("http://127.0.0.1/"), avoidingExpensive: true))
        let waiting = waiting(for: target, at: gate, time)
        await time.waitForSleepers(1)
        // One that does not speak for a minute knows nothing.
        time.advance(by: NetworkGate.probeInterval)
        try await waiting.value
        #expect(!gate.isForbidden(target, avoidingExpensive: true))
    }
}

/// Says nothing, and does not end.
private struct SilentMonitor: NetworkMonitor {
    private let source = AsyncStream.makeStream(of: NetworkEvent.self)

    func events() -> AsyncStream<NetworkEvent> { source.stream }
}

extension NetworkGate {
    /// Waits until the monitor's report has arrived.
    func waitUntil(_ condition: (NetworkStatus) -> Bool) async {
        while true {
            let seen = changes.version
            if condition(status) { return }
            await changes.wait(after: seen)
        }
    }
}
