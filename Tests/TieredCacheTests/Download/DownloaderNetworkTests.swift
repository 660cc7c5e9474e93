import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct DownloaderNetworkTests {
    private static let length = 5000

    private func plan() throws -> DownloadPlan {
        DownloadPlan(target: try TargetURI("https://far.example/a"))
    }

    private func gate(_ monitor: ScriptedNetworkMonitor) -> NetworkGate {
        let gate = NetworkGate(monitor)
        gate.start()
        return gate
    }

    @Test("Offline spends no attempt, however long; online goes on where the bytes stopped")
    func parks() async throws {
        let monitor = ScriptedNetworkMonitor(NetworkStatus(isOnline: false))
        let (gate, sink) = (gate(monitor), RecordingSink())
        await gate.waitUntil { $0.isOnline == false }
        let model = ScriptedOriginModel(length: Self.length)
        // Far more failures than attempts are allowed; the last one brings the network back.
        let transport = ScriptedTransport { request, index in
            if index == 20 { monitor.report(NetworkStatus(isOnline: true)) }
            return index < 21 ? ScriptedResponse(failure: .connect) : model.answer(request)
        }
        var patient = try plan()
        patient.policy.timeout = .seconds(4000)
        let outcome = try await Downloader(
            transport: transport,
            time: InstantTime(longest: .seconds(3000)),
            network: gate,
            jitter: { 0.5 }
        ).run(patient, into: sink)
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        let retries = sink.snapshot.retries
        #expect(retries.count == 21)
        #expect(retries.prefix(20).allSatisfy { $0.isForNetwork && $0.attempts == 1 })
    }

    @Test("A lost address ends the exchanges that use it, at once, and spends no attempt")
    func lostAddress() async throws {
        let monitor = ScriptedNetworkMonitor()
        let (gate, sink) = (gate(monitor), RecordingSink())
        var stalling = ScriptedOriginModel(length: Self.length)
        stalling.cutAfter = 2000
        let (first, rest) = (stalling, ScriptedOriginModel(length: Self.length))
        let transport = ScriptedTransport { request, index in
            guard index < 8 else { return rest.answer(request) }
            var response = index == 0 ? first.answer(request) : .silence
            if index == 0 { response.steps[response.steps.count - 1] = .stall }
            return response
        }
        let time = ManualTimeSource()
        let download = Task { [plan = try plan()] in
            try await Downloader(
                transport: transport,
                time: time,
                network: gate,
                jitter: { 0 }
            ).run(plan, into: sink)
        }
        for count in 1...8 {
            // The watchdog sleeps when the exchange is under way.
            await transport.waitForRequests(count)
            await sink.waitForBytes(2000)
            monitor.loseAddress("192.0.2.1")
        }
        let outcome = try await download.value
        #expect(outcome.end == .completed(completeLength: Int64(Self.length)))
        #expect(outcome.bytesRefetched == 0)
        #expect(transport.requests.count == 9)
        #expect(sink.snapshot.retries.allSatisfy { $0.delay == .zero })
    }

    @Test("Exchanges from another address, or to this machine, go on")
    func otherAddress() throws {
        let time = ManualTimeSource()
        let (far, near) = (try plan().target, try TargetURI("http://127.0.0.1/"))
        let watchdog = DownloadWatchdog(timeout: .seconds(30), time: time)
        watchdog.didReceiveHead(from: "192.0.2.1")
        watchdog.didLoseAddress("192.0.2.2", target: far)
        watchdog.didLoseAddress("192.0.2.1", target: near)
        #expect(watchdog.decision == nil)
        watchdog.didLoseAddress("192.0.2.1", target: far)
        #expect(watchdog.decision == .addressLost)
    }

    @Test("A download that must not use a metered network waits for another one")
    func metered() async throws {
        let monitor = ScriptedNetworkMonitor(NetworkStatus(isOnline: true, isMetered: true))
        let (gate, sink) = (gate(monitor), RecordingSink())
        await gate.waitUntil { $0.isMetered == true }
        let model = ScriptedOriginModel(length: Self.length)
        let transport = ScriptedTransport { request, _ in model.answer(request) }
        let time = ManualTimeSource()
        var metered = try plan()
        metered.policy.avoidsExpensiveNetworks = true
        let plan = metered
        let download = Task {
            try await Downloader(transport: transport, time: time, network: gate, jitter: { 0 })
                .run(plan, into: sink)
        }
        await time.waitForSleepers(1)
        #expect(transport.requests.isEmpty)
        monitor.report(NetworkStatus(isOnline: true, isMetered: false))
        _ = try await download.value
        #expect(transport.requests.count == 1)
    }
}
