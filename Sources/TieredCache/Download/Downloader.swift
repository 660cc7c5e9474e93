import HTTPCaching
import HTTPTypes

/// Carries a download out: performs the actions of ``DownloadStateMachine``.
///
/// Runs in the caller's task, which should prefer an I/O executor, because the sink may block.
package struct Downloader: Sendable {
    private let transport: any Transport
    private let time: any TimeSource
    private let jitter: @Sendable () -> Double
    private let network: NetworkGate

    /// Creates a downloader; it has no state of its own and can run many downloads.
    ///
    /// - Parameters:
    ///   - transport: Sends the requests.
    ///   - time: The clock.
    ///   - network: The state of the network; nil if unknown.
    ///   - jitter: Draws the number from 0 to 1 that places a wait under its ceiling.
    init(
        transport: any Transport,
        time: any TimeSource,
        network: NetworkGate? = nil,
        jitter: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }
    ) {
        self.network = network ?? NetworkGate(nil)
        self.transport = transport
        self.time = time
        self.jitter = jitter
    }

    /// Downloads the bytes of `plan` into `sink`.
    ///
    /// Cancelling the task closes the exchange at once. The bytes that the sink has received are a
    /// valid prefix at every moment and stay so, however the download ends.
    ///
    /// - Parameters:
    ///   - plan: The bytes to fetch, and the stored generation.
    ///   - sink: Receives the bytes.
    /// - Returns: The kind of the end.
    /// - Throws: ``CacheError``; the sink's own errors unchanged.
    package func run(
        _ plan: DownloadPlan,
        into sink: some DownloadSink
    ) async throws(CacheError) -> DownloadOutcome {
        var run = DownloadRun(plan, sink: sink, now: time.monotonicTime())
        var action = run.machine.start()
        while true {
            switch action {
            case .send(let request):
                action =
                    network.isForbidden(
                        run.machine.finalTarget,
                        avoidingExpensive: run.machine.plan.policy.avoidsExpensiveNetworks
                    )
                    ? run.machine.waitForNetwork("can be reached only over a metered network")
                    : try await exchange(request, run: &run)
            case .withdraw(let next):
                run.sink.withdraw()
                action = next
            case .resolve(let status):
                action = run.machine.didResolve(await plan.resolve?(status))
            case .wait(let retry):
                action = await wait(for: retry, run: &run)
            case .finish(let end):
                return run.outcome(end)
            case .fail(let failure):
                throw failure.error(for: plan.target)
            case .receive, .compare:
                preconditionFailure("an exchange receives its own body")
            }
        }
    }

    private func wait(
        for retry: DownloadStateMachine.PendingRetry,
        run: inout DownloadRun<some DownloadSink>
    ) async -> DownloadStateMachine.Action {
        let policy = run.machine.plan.policy
        let target = run.machine.finalTarget
        let delay =
            retry.isImmediate || retry.isForNetwork
            ? .zero
            : policy.backoff.delay(
                after: retry.attempts,
                retryAfter: retry.retryAfter,
                jitter: jitter()
            )
        run.sink.willRetry(
            DownloadRetry(
                delay: delay,
                attempts: retry.attempts,
                maximumAttempts: policy.maximumAttempts,
                reason: "the origin \(retry.reason)",
                isForNetwork: retry.isForNetwork
            )
        )
        do {
            if retry.isForNetwork {
                try await network.waitUntilUsable(
                    for: target,
                    avoidingExpensive: policy.avoidsExpensiveNetworks,
                    time: time,
                    jitter: jitter()
                )
            } else {
                try await time.sleep(for: delay)
            }
        } catch {
            // Only cancellation ends a sleep early.
            return .fail(.cancelled)
        }
        return run.machine.didWait()
    }

    /// Performs one exchange with a watchdog that ends it if no byte arrives.
    private func exchange<Sink: DownloadSink>(
        _ request: DownloadRequest,
        run: inout DownloadRun<Sink>
    ) async throws(CacheError) -> DownloadStateMachine.Action {
        let watchdog = DownloadWatchdog(timeout: run.machine.plan.policy.timeout, time: time)
        var observed = request
        let observation = run.machine.plan.observation?.begin(
            &observed.head,
            to: run.machine.finalTarget
        )
        let exchange = DownloadExchange(
            transport: transport,
            time: time,
            watchdog: watchdog,
            network: network,
            request: observed,
            observation: observation
        )
        defer { observation?.end() }
        let handler = network.onLostAddress { watchdog.didLoseAddress($0, target: request.target) }
        defer { network.removeHandler(handler) }
        let action: Result<DownloadStateMachine.Action, CacheError>
        if transport is any CancellableTransport {
            action = await watchdog.watchAttached { await exchange.perform(&run) }
        } else {
            (run, action) = await watchdog.watch { [run] in
                var run = run
                let action = await exchange.perform(&run)
                return (run, action)
            }
        }
        if case .failure(let error) = action {
            if error.code == .cancelled {
                observation?.didCancel()
            } else {
                observation?.didFail(error, type: error.code.description)
            }
        }
        return try action.get()
    }
}

/// The state that one download carries from exchange to exchange.
struct DownloadRun<Sink: DownloadSink>: Sendable {
    var machine: DownloadStateMachine
    let sink: Sink
    var rate: RateEstimator
    var throttle: ThrottleWatch
    /// The head of the current exchange until the sink has received it.
    var head: DownloadHead?
    /// The length of responses that a throttling origin sends fast; 0 if shorter ones were no
    /// faster.
    var fastLength: Int64?
    var bytesReceived: Int64 = 0
    var bytesRefetched: Int64 = 0
    var requests = 0
    /// The offsets received in the current generation: from the first of them to the highest.
    var arrived: Range<Int64>
    var lastReport: MonotonicTime

    init(_ plan: DownloadPlan, sink: Sink, now: MonotonicTime) {
        machine = DownloadStateMachine(plan) { sink.storedRun(near: $0) }
        self.sink = sink
        rate = RateEstimator(now: now)
        throttle = ThrottleWatch(isOn: plan.policy.detectsThrottling, now: now)
        arrived = plan.range.lowerBound..<plan.range.lowerBound
        lastReport = now
    }

    mutating func didBegin(_ kind: DownloadHead.Kind) {
        guard case .newGeneration(let start) = kind else { return }
        // Bytes of another representation were received in vain, so they count as well.
        bytesRefetched += Int64(arrived.count)
        arrived = start.offset..<start.offset
    }

    mutating func didReceive(_ count: Int, at offset: Int64, now: MonotonicTime) {
        let end = offset + Int64(count)
        bytesReceived += Int64(count)
        let twice = max(offset, arrived.lowerBound)..<max(offset, arrived.lowerBound, end)
        bytesRefetched += Int64(twice.clamped(to: arrived).count)
        if end > arrived.upperBound, offset <= arrived.upperBound {
            arrived = min(arrived.lowerBound, offset)..<end
        }
        rate.didReceive(count, now: now)
        guard lastReport.duration(to: now) >= .milliseconds(100) else { return }
        lastReport = now
        report()
    }

    /// Checks whether the origin throttles; returns an action that replaces waiting for more.
    mutating func didMeasure(
        _ count: Int,
        waited: Duration,
        now: MonotonicTime
    ) -> DownloadStateMachine.Action? {
        switch throttle.didReceive(count, waited: waited, now: now) {
        case nil:
            return nil
        case .bound(let length):
            let action = machine.didThrottle(length: length)
            if action == nil { throttle.giveUp() }
            return action
        case .helps(let length):
            fastLength = length
            return nil
        case .doesNotHelp:
            fastLength = 0
            machine.didNotSpeedUp()
            return nil
        }
    }

    func report() {
        sink.didProgress(
            DownloadProgress(
                offset: machine.position,
                completeLength: machine.completeLength,
                bytesReceived: bytesReceived,
                bytesPerSecond: rate.bytesPerSecond
            )
        )
    }

    func outcome(_ end: DownloadOutcome.End) -> DownloadOutcome {
        report()
        return DownloadOutcome(
            end: end,
            bytesReceived: bytesReceived,
            bytesRefetched: bytesRefetched,
            requests: requests,
            areRangesUntrusted: machine.areRangesUntrusted,
            fastLength: fastLength,
            permanentTarget: machine.chain.permanentTarget,
            finalTarget: machine.finalTarget
        )
    }
}
