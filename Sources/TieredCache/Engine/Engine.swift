import HTTPCaching
import Logging

/// Opens the parts of one cache, and closes them: the tiers, the transport, the queue, the
/// recorder.
final class Engine: Sendable {
    let storage: Storage
    let origins: Origins
    let transfers: Transfers
    let responder: Responder
    let time: any TimeSource
    let recorder: Recorder

    /// Opens the tiers.
    ///
    /// - Parameters:
    ///   - configuration: limits, directory and policies.
    ///   - parts: the machine's, unless a test has its own.
    /// - Throws: `.invalidArgument`; `.localStorage` where libcrypto lacks MD5 or SHA-256.
    init(_ configuration: MediaCache.Configuration, parts: EngineParts) throws(CacheError) {
        try configuration.validate()
        try MD5.requireAlgorithms()
        time = configuration.timeSource
        let rules = CacheRules(
            isShared: configuration.isShared,
            applicationLifetime: configuration.applicationLifetime
        )
        let (io, writers) = (parts.makeExecutor("tc-io"), parts.makeExecutor("tc-write"))
        origins = try Origins(configuration, rules: rules, jitter: parts.jitter)
        recorder = Recorder(configuration, writers: writers)
        storage = try Storage(
            configuration,
            parts: parts,
            rules: rules,
            io: io,
            writers: writers,
            recorder: recorder
        )
        transfers = Transfers(configuration, storage: storage, origins: origins)
        responder = Responder(storage: storage, transfers: transfers)
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
        let hasClosed = await finishing(within: Self.patience.closing, time) { [storage] in
            await storage.writers.run { storage.disk.close() }
        }
        if !hasEnded || !hasClosed {
            recorder.logger.warning("the cache was left before everything had ended")
        }
        recorder.events.finish()
    }
}
