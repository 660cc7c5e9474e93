import HTTPCaching
import Logging

/// Opens and closes the parts of one cache: the tiers, the transport, the queues, the recorder.
final class Engine: Sendable {
    let storage: Storage
    let origins: Origins
    let transfers: Transfers
    let responder: Responder
    let time: any TimeSource
    let recorder: Recorder

    /// Opens the parts.
    ///
    /// - Parameters:
    ///   - configuration: limits, directory and policies.
    ///   - parts: threads, file system and random numbers; tests replace them.
    /// - Throws: `.invalidArgument`; `.localStorage` if libcrypto lacks MD5 or SHA-256.
    init(_ configuration: MediaCache.Configuration, parts: EngineParts) throws(CacheError) {
        try configuration.validate()
        try MD5.requireAlgorithms()
        time = configuration.timeSource
        let rules = CacheRules(
            isShared: configuration.isShared,
            applicationLifetime: configuration.applicationLifetime
        )
        let (io, writers) = (parts.makeExecutor("tc-io"), parts.makeExecutor("tc-write"))
        recorder = Recorder(configuration, writers: writers)
        if io.isWithoutThreads || writers.isWithoutThreads {
            recorder.logger.warning(
                "no thread can be started: until one can, the disk blocks the threads of all tasks"
            )
        }
        storage = try Storage(
            configuration,
            parts: parts,
            rules: rules,
            io: io,
            writers: writers,
            recorder: recorder
        )
        origins = try Origins(
            configuration,
            rules: rules,
            storage: storage,
            jitter: parts.jitter
        )
        transfers = Transfers(configuration, storage: storage, origins: origins)
        responder = Responder(storage: storage, transfers: transfers)
    }

    /// The time limits of a shutdown: for downloads and connections to end, then for the directory
    /// to close.
    private static let timeouts = (
        ending: Duration.seconds(3), closing: Duration.milliseconds(1500)
    )

    /// Ends downloads, closes the store and the connections, and waits for all of it, but less than
    /// five seconds: work that hangs in a disk or a peer is abandoned.
    ///
    /// - Parameter endJobs: ends the jobs, which would start downloads again.
    func shutdown(after endJobs: @escaping @Sendable () async -> Void) async {
        storage.stop()
        let hasEnded = await finishing(within: Self.timeouts.ending, time: time) { [self] in
            await endJobs()
            await transfers.shutdown()
            origins.network.stop()
            await origins.transport.shutdown()
            await storage.awaitStop()
        }
        let hasClosed = await finishing(within: Self.timeouts.closing, time: time) { [storage] in
            // A cache that is opened next owns the directory, even if the store was writing down
            // what was used.
            _ = await storage.writers.run { storage.disk.close() }?.wait()
        }
        if !hasEnded || !hasClosed {
            recorder.logger.warning("the shutdown timed out; some work was still running")
        }
        recorder.events.finish()
    }
}
