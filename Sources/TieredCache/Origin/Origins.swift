import HTTPCaching
import HTTPTypes
import Logging

/// Access to origins, and the findings of earlier downloads about them.
final class Origins: Sendable {
    let transport: any Transport
    /// Says whether the network can be used.
    let network: NetworkGate
    let bandwidth: BandwidthLimiter
    let time: any TimeSource
    let rules: CacheRules
    /// Limitations of origins, by host.
    let hosts = Guarded(HostTraits())
    private let redirects = Guarded(PermanentRedirects())
    /// The keys whose bodies did not match their digests, and when.
    let integrity = Guarded(IntegrityLedger())
    private let configuration: MediaCache.Configuration
    /// Observes what is asked of origins; nil for nothing.
    var observer: (any OriginObserver)? { configuration.observer }
    /// Draws random numbers in 0..<1 that spread the waits between attempts.
    private let jitter: @Sendable () -> Double

    /// Makes the transport; nothing is asked of an origin yet.
    ///
    /// - Parameters:
    ///   - configuration: the policies for origins, and the transport.
    ///   - rules: the rules of caching.
    ///   - storage: the tiers, for a process that is a guest of its directory.
    ///   - jitter: draws random numbers in 0..<1.
    /// - Throws: `.invalidArgument` for a transport that cannot be made.
    init(
        _ configuration: MediaCache.Configuration,
        rules: CacheRules,
        storage: Storage,
        jitter: @escaping @Sendable () -> Double
    ) throws(CacheError) {
        self.configuration = configuration
        self.rules = rules
        self.jitter = jitter
        time = configuration.timeSource
        transport = try configuration.makeTransport(
            threads: storage.io,
            owner: { [disk = storage.disk] in disk.openStore?.access.owner },
            stored: { [storage] in await StoredRemainder.response(to: $0, from: storage) }
        )
        network = NetworkGate(configuration.networkMonitor)
        bandwidth = BandwidthLimiter(configuration.bandwidth, time: configuration.timeSource)
    }

    /// What holds for redirects whichever request they answer: whether they must not lead from
    /// elsewhere to this machine, and which fields stay with the first origin.
    var redirectRules: (staysOutside: Bool, secretFields: Set<HTTPField.Name>) {
        (!configuration.followsRedirectsInside, configuration.secretFields)
    }

    /// Makes the downloader for one download from `target`.
    func downloader(for target: TargetURI) -> Downloader {
        if !target.isLoopback { network.start() }
        return Downloader(transport: transport, time: time, network: network, jitter: jitter)
    }

    /// The part of a download's plan that all transfers of a request share.
    ///
    /// To be called in the task of the request, whose task-local values an observer takes.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - range: the bytes to fetch.
    ///   - reason: why the cache does not answer without the origin.
    /// - Returns: the plan.
    func plan(
        _ request: CacheRequest,
        range: Range<Int64>,
        reason: CacheStatus.ForwardReason
    ) -> DownloadPlan {
        var policy = DownloadPolicy()
        policy.maximumAttempts = max(1, request.retries ?? configuration.retries)
        policy.timeout = request.timeout ?? configuration.timeout
        policy.connectTimeout = configuration.connectTimeout
        policy.acceptsWholeBodies = request.scope != nil
        policy.staysOutside = redirectRules.staysOutside
        var plan = DownloadPlan(
            target: request.target,
            method: request.method,
            fields: request.fields,
            body: request.body,
            range: range,
            policy: policy
        )
        plan.observation = configuration.observer?.observe(reason)
        if let relay = request.relay {
            plan.relay = RelayPlan()
            plan.relay?.onInterim = relay.onInterim
            plan.upload = relay.upload
            plan.policy.keepsCoding = true
            // The client of a relay waits and can retry itself.
            plan.policy.maximumAttempts = min(2, policy.maximumAttempts)
            return plan
        }
        plan.secretFields = redirectRules.secretFields.union(request.firstOriginFields)
        if request.method == .get, request.isCacheable {
            plan.shared = SharedRequest(
                target: request.target,
                key: request.explicitKey,
                secretFields: plan.secretFields,
                priority: request.priority,
                reloads: request.policy == .reload,
                // A first read may wait for two downloads, that of the opening and its own, and
                // leaves the origin half of its time.
                patience: request.readDeadline.map {
                    min(max($0 / 4, .milliseconds(50)), SharedRequest.patience)
                } ?? SharedRequest.patience
            )
        }
        plan.asksForRange = request.range != nil
        plan.excludedHosts = request.excludedHosts
        plan.via = configuration.via
        let now = time.monotonicTime()
        learn(from: request, now: now, into: &plan)
        let isSecondTry = integrity.withLock {
            $0.isSecondTry(request.key, expecting: request.expectedDigests, now: now)
        }
        if isSecondTry {
            // Row 27: in one piece, and past caches on the path.
            plan.bypassesCaches = true
            plan.policy.areRangesUntrusted = true
        }
        return plan
    }

    /// A request as it has to be sent after the stored body turned out not to be what it has to be,
    /// and stays stored: past that body.
    func passingRefused(_ request: CacheRequest) -> CacheRequest {
        guard request.relay == nil, request.policy != .cacheOnly, request.policy != .reload else {
            return request
        }
        let now = time.monotonicTime()
        let mustPass = integrity.withLock {
            $0.mustPassStored(request.key, expecting: request.expectedDigests, now: now)
        }
        guard mustPass else { return request }
        var request = request
        request.policy = .reload
        return request
    }

    /// Applies the findings of earlier downloads and the settings of the application to a plan.
    private func learn(
        from request: CacheRequest,
        now: MonotonicTime,
        into plan: inout DownloadPlan
    ) {
        let origin = request.target.origin
        let (limits, fastLength) = hosts.withLock {
            ($0.limits(of: origin, now: now), $0.fastLength(of: origin, now: now))
        }
        plan.policy.areRangesUntrusted = limits.contains(.withoutRanges)
        plan.policy.maximumRequestLength = configuration.maximumRequestLength ?? fastLength
        plan.policy.detectsThrottling = !limits.contains(.slowAnyway)
        plan.policy.avoidsExpensiveNetworks = request.options.contains(.avoidsExpensiveNetworks)
        plan.isSegment = request.isSegment && !limits.contains(.withoutSegments)
        if request.method == .get {
            plan.permanentTarget = redirects.withLock { $0.target(of: request.target, now: now) }
        }
        guard let resolver = configuration.urlResolver else { return }
        let logger = configuration.logger
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

    /// Remembers the findings of a download about its origin.
    func didLearn(from outcome: DownloadOutcome, of request: CacheRequest) {
        let now = time.monotonicTime()
        var limits: HostTraits.Limits = outcome.areRangesUntrusted ? [.withoutRanges] : []
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

    /// Notes that the origin has answered a range request with the whole: no segments from it.
    func didIgnoreRange(_ request: CacheRequest) {
        guard request.relay == nil else { return }
        let now = time.monotonicTime()
        hosts.withLock { $0.remember(.withoutSegments, of: request.target.origin, now: now) }
    }
}
