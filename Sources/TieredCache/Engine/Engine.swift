import HTTPCaching
import Logging

/// What the operations of one cache share: the tiers, the queue, the transport, the recorder.
final class Engine: Sendable {
    let configuration: Configuration
    let rules: CacheRules
    let storage: Storage
    let origins: Origins
    let transfers: Transfers
    /// Where lookups and reads may block on the disk.
    let io: IOExecutor
    /// Where downloads run, and everything that writes: what waits here for a lock or for room keeps
    /// no lookup waiting (invariant 12).
    let writers: IOExecutor
    let time: any TimeSource
    let recorder: Recorder
    let judge: ReuseJudge
    let responses: ResponseFactory

    /// The keys whose responses are being validated in the background.
    let revalidations = Guarded<Set<CacheKey>>([])

    /// Opens the tiers.
    ///
    /// - Parameters:
    ///   - configuration: limits, directory and policies.
    ///   - parts: the machine's, unless a test has its own.
    /// - Throws: `.invalidArgument`; `.localStorage` where libcrypto lacks MD5 or SHA-256.
    init(
        _ configuration: Configuration,
        parts: EngineParts = EngineParts()
    ) throws(CacheError) {
        try configuration.validate()
        try MD5.requireAlgorithms()
        self.configuration = configuration
        time = configuration.timeSource
        rules = CacheRules(
            isShared: configuration.isShared,
            applicationLifetime: configuration.applicationLifetime
        )
        io = parts.makeExecutor("tc-io")
        writers = parts.makeExecutor("tc-write")
        origins = try Origins(configuration, rules: rules, jitter: parts.jitter)
        recorder = Recorder(configuration, writers: writers)
        judge = ReuseJudge(rules: rules, time: configuration.timeSource)
        responses = ResponseFactory(time: configuration.timeSource, recorder: recorder)
        storage = try Storage(
            configuration,
            parts: parts,
            rules: rules,
            io: io,
            writers: writers,
            recorder: recorder
        )
        transfers = Transfers(configuration, storage: storage, origins: origins)
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
        storage.stop()
        let hasEnded = await finishing(within: Self.patience.ending, time) { [self] in
            await endJobs()
            await transfers.queue.shutdown()
            await transfers.uploads.shutdown()
            origins.network.stop()
            await origins.transport.shutdown()
            await storage.awaitStop()
        }
        let hasClosed = await finishing(within: Self.patience.closing, time) { [storage, writers] in
            await writers.run { storage.disk.close() }
        }
        if !hasEnded || !hasClosed {
            recorder.logger.warning("the cache was left before everything had ended")
        }
        recorder.events.finish()
    }
}
