import HTTPCaching
import HTTPTypes
import Logging
import Synchronization

/// What the operations of one cache share: the tiers, the queue, the transport, the recorder.
final class Engine: Sendable {
    let configuration: Configuration
    let rules: CacheRules
    let storage: Storage
    let queue: RequestQueue
    /// Runs what brings content to an origin: a client that sends slowly keeps no download waiting.
    let uploads: RequestQueue
    let transport: any Transport
    /// Where lookups and reads may block on the disk.
    let io: IOExecutor
    /// Where downloads run, and everything that writes: what waits here for a lock or for room keeps
    /// no lookup waiting (invariant 12).
    let writers: IOExecutor
    /// Draws the numbers that place waits between attempts.
    let jitter: @Sendable () -> Double
    let time: any TimeSource
    let recorder: Recorder
    let responses: ResponseFactory

    /// The keys whose responses are being validated in the background.
    let revalidations = Guarded<Set<CacheKey>>([])
    /// What is known of the network.
    let network: NetworkGate
    let bandwidth: BandwidthLimiter
    /// What origins were found to be unable to do.
    let hosts = Guarded(HostMemory())
    let redirects = Guarded(PermanentRedirects())
    /// Whose bytes were not what they should be.
    let integrity = Guarded(IntegrityLedger())

    private let fills = Guarded<[FlightGroup: WeakFill]>([:])
    /// Reads the directory through, so that the first write need not.
    private let indexing: Task<Void, Never>?
    /// Writes the history now and then.
    private let recording: Task<Void, Never>?
    private let nextNumber = Atomic<UInt64>(0)

    private struct WeakFill {
        weak var fill: Fill?
    }

    /// Opens the tiers.
    ///
    /// - Parameters:
    ///   - configuration: limits, directory and policies.
    ///   - parts: the machine's, unless a test has its own.
    /// - Throws: `.invalidArgument`.
    init(
        _ configuration: Configuration,
        parts: EngineParts = EngineParts()
    ) throws(CacheError) {
        try configuration.validate()
        self.configuration = configuration
        time = configuration.timeSource
        rules = CacheRules(
            isShared: configuration.isShared,
            applicationLifetime: configuration.applicationLifetime
        )
        transport = try configuration.makeTransport()
        network = NetworkGate(configuration.networkMonitor)
        bandwidth = BandwidthLimiter(configuration.bandwidth, time: configuration.timeSource)
        io = parts.makeExecutor("tc-io")
        writers = parts.makeExecutor("tc-write")
        jitter = parts.jitter
        queue = RequestQueue(
            limits: RequestQueueStateMachine.Limits(
                maximumDownloads: configuration.maximumDownloads,
                maximumPerHost: configuration.maximumDownloadsPerHost
            ),
            executor: writers
        )
        uploads = RequestQueue(
            limits: RequestQueueStateMachine.Limits(
                maximumDownloads: configuration.maximumUploads,
                maximumPerHost: configuration.maximumUploads
            ),
            firstFlight: 1 << 63,
            executor: writers
        )
        recorder = Recorder(configuration, writers: writers)
        responses = ResponseFactory(time: configuration.timeSource, recorder: recorder)
        storage = try Storage(
            configuration,
            parts: parts,
            rules: rules,
            io: io,
            writers: writers,
            recorder: recorder
        )
        recording = recorder.history.map { [writers, time] history in
            Task { await history.writeNowAndThen(writers, time) }
        }
        let reads = configuration.readsDirectoryOnOpening
        indexing = (reads ? storage.disk.openStore : nil).map { [writers] store in
            Task(executorPreference: writers) {
                do throws(CacheError) {
                    try store.loadIndex { Task.isCancelled }
                } catch {
                    // The first write needs the index as well, tries again, and reports.
                }
            }
        }
    }

    deinit {
        indexing?.cancel()
        recording?.cancel()
    }

    /// How long downloads and connections may take to end, and then the directory to be closed.
    private static let patience = (
        ending: Duration.seconds(3), closing: Duration.milliseconds(1500)
    )

    /// Ends downloads, closes the store and the connections; waits for all of it, but for less than
    /// five seconds: what hangs in a disk or a peer is left behind.
    ///
    /// - Parameter endJobs: ends what would start downloads again.
    func shutdown(after endJobs: @escaping @Sendable () async -> Void) async {
        indexing?.cancel()
        recording?.cancel()
        let hasEnded = await finishing(within: Self.patience.ending, time) { [self] in
            await endJobs()
            await queue.shutdown()
            await uploads.shutdown()
            network.stop()
            await transport.shutdown()
            await indexing?.value
        }
        let hasClosed = await finishing(within: Self.patience.closing, time) { [storage, writers] in
            await writers.run { storage.disk.close() }
        }
        if !hasEnded || !hasClosed {
            recorder.logger.warning("the cache was left before everything had ended")
        }
        recorder.events.finish()
    }

    /// Does something to all that runs.
    func forEachQueue(_ body: (RequestQueue) -> Void) {
        body(queue)
        body(uploads)
    }

    // MARK: Fills

    /// The fill of a request, shared with all requests for the same key and selecting fields.
    func fill(for request: CacheRequest) -> Fill {
        let group = FlightGroup(key: request.key, selector: request.selector)
        return fills.withLock { fills in
            if let fill = fills[group]?.fill { return fill }
            let fill = Fill(group: group) { [weak self] in self?.didRelease(group) }
            fills[group] = WeakFill(fill: fill)
            return fill
        }
    }

    private func didRelease(_ group: FlightGroup) {
        // Another one may have taken its place meanwhile. It is let go of outside the lock: if this
        // is the last reference by then, its release takes the lock again.
        let other = fills.withLock { fills -> Fill? in
            guard let entry = fills[group] else { return nil }
            if let fill = entry.fill { return fill }
            fills[group] = nil
            return nil
        }
        withExtendedLifetime(other) {}
    }

    /// A group that nobody else joins.
    func soleGroup(_ group: FlightGroup) -> FlightGroup {
        let number = nextNumber.wrappingAdd(1, ordering: .relaxed).newValue
        return FlightGroup(key: group.key, selector: "\(group.selector)#\(number)")
    }

    // MARK: Flights

    /// The part of a download's plan that is the same for all of a request's flights.
    func plan(_ request: CacheRequest, range: Range<Int64>) -> DownloadPlan {
        var policy = DownloadPolicy()
        policy.maximumAttempts = configuration.retries
        policy.timeout = configuration.timeout
        policy.connectTimeout = configuration.connectTimeout
        policy.takesWholeAnswers = request.scope != nil
        policy.staysOutside = !configuration.followsRedirectsInside
        var plan = DownloadPlan(
            target: request.target,
            method: request.method,
            fields: request.fields,
            body: request.body,
            range: range,
            policy: policy
        )
        if let relay = request.relay {
            plan.relay = RelayPlan()
            plan.relay?.onInterim = relay.onInterim
            plan.upload = relay.upload
            plan.policy.keepsCoding = true
            // Another client waits and can try again itself.
            plan.policy.maximumAttempts = min(2, configuration.retries)
            return plan
        }
        plan.secretFields = configuration.secretFields
        plan.via = configuration.via
        let now = time.monotonicTime()
        learn(from: request, now, into: &plan)
        if integrity.withLock({ $0.isSecondTry(request.key, now: now) }) {
            // Row 27: in one piece, and from the origin itself.
            plan.bypassesCaches = true
            plan.policy.areRangesUntrusted = true
        }
        return plan
    }

    /// What earlier downloads and the application know about the way.
    private func learn(
        from request: CacheRequest,
        _ now: MonotonicTime,
        into plan: inout DownloadPlan
    ) {
        let origin = request.target.origin
        let (limits, fastLength) = hosts.withLock {
            ($0.limits(of: origin, now: now), $0.fastLength(of: origin, now: now))
        }
        plan.policy.areRangesUntrusted = limits.contains(.withoutRanges)
        plan.policy.maximumRequestLength = configuration.maximumRequestLength ?? fastLength
        plan.policy.detectsThrottling = !limits.contains(.slowAnyway)
        plan.policy.metered = request.metered
        plan.isSegment = request.isSegment && !limits.contains(.withoutSegments)
        if request.method == .get {
            plan.permanentTarget = redirects.withLock { $0.target(of: request.target, now: now) }
        }
        guard let resolver = configuration.urlResolver else { return }
        let logger = recorder.logger
        plan.resolve = { status in
            guard let url = await resolver(request, status) else { return nil }
            do throws(TargetURIError) {
                return try TargetURI(url)
            } catch {
                logger.warning("the resolver gave no URL for \(request.target.redacted): \(error)")
                return nil
            }
        }
    }

    /// Takes in what a download has found out about the way.
    func didLearn(from outcome: DownloadOutcome, of request: CacheRequest) {
        let now = time.monotonicTime()
        var limits: HostMemory.Limits = outcome.areRangesUntrusted ? [.withoutRanges] : []
        if outcome.fastLength == 0 { limits.insert(.slowAnyway) }
        let fastLength = outcome.fastLength.flatMap { $0 > 0 ? $0 : nil }
        hosts.withLock {
            $0.remember(limits, fastLength: fastLength, of: request.target.origin, now: now)
        }
        guard request.method == .get else { return }
        redirects.withLock {
            $0.remember(outcome.permanentTarget, of: request.target, now: now)
        }
    }

    /// The origin has sent all of a representation for a part of it: no segments are asked of it.
    func didIgnoreRange(_ request: CacheRequest) {
        guard request.relay == nil else { return }
        let now = time.monotonicTime()
        hosts.withLock { $0.remember(.withoutSegments, of: request.target.origin, now: now) }
    }
}
