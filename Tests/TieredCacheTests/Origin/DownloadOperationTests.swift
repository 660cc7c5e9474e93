import HTTPCaching
import HTTPTypes
import SystemPackage
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

/// A download is made of the storage and the origins alone.
@Suite("One download", .timeLimit(.minutes(1)))
struct DownloadOperationTests {
    private static func transfers(_ cacheControl: String) throws -> Transfers {
        var parts = EngineParts()
        parts.fileSystem = InMemoryFileSystem()
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.minimumFreeDisk = 0
        configuration.networkMonitor = nil
        configuration.respondsToMemoryPressure = false
        configuration.transport = ScriptedTransport { _, _ in
            ScriptedResponse(
                status: 200,
                fields: [.cacheControl: cacheControl, .contentLength: "4096"],
                steps: [.bytes([UInt8](repeating: 7, count: 4096))]
            )
        }
        let rules = CacheRules(isShared: false, applicationLifetime: nil)
        let writers = parts.makeExecutor("tc-write")
        let storage = try Storage(
            configuration,
            parts: parts,
            rules: rules,
            io: parts.makeExecutor("tc-io"),
            writers: writers,
            recorder: Recorder(configuration, writers: writers)
        )
        let origins = try Origins(configuration, rules: rules) { 0.5 }
        return Transfers(configuration, storage: storage, origins: origins)
    }

    /// Runs a download to its end.
    private static func download(
        _ request: CacheRequest,
        _ transfers: Transfers
    ) async throws -> SharedTransfers.Outcome? {
        let shared = transfers.shared(for: request)
        let operation = DownloadOperation(
            storage: transfers.storage,
            origins: transfers.origins,
            shared: shared,
            group: shared.group,
            request: request,
            plan: transfers.origins.plan(request, range: FirstRange.ofTransfer(for: nil)),
            base: nil,
            stored: nil
        )
        let share = transfers.join(operation, at: 0)
        while share.outcome == nil {
            let seen = shared.signal.version
            guard share.outcome == nil else { break }
            await shared.signal.wait(after: seen)
        }
        try share.outcome?.get()
        return share.report?.answer
    }

    @Test("What may be stored is stored, found and counted")
    func storing() async throws {
        let transfers = try Self.transfers("max-age=60")
        let request = try CacheRequest("http://origin.example/film")
        guard case .storing(let generation) = try await Self.download(request, transfers) else {
            Issue.record("the answer is not stored")
            return
        }
        #expect(generation.entry.isComplete)
        let found = try await transfers.storage.entry(for: request.key, isUse: false)
        #expect(found?.generation == generation.entry.generation)
        #expect(found?.completeLength == 4096)
        let statistics = transfers.storage.recorder.counters.statistics
        #expect(statistics.downloadsFinished == 1)
        #expect(statistics.bytesStored == 4096)
        transfers.storage.disk.close()
    }

    @Test("What must not be stored goes past the disk")
    func passing() async throws {
        let transfers = try Self.transfers("no-store")
        let request = try CacheRequest("http://origin.example/secret")
        guard
            case .passing(_, let channel, .forbidden) = try await Self.download(request, transfers)
        else {
            Issue.record("the answer is stored")
            return
        }
        #expect(channel.claim())
        #expect(try await transfers.storage.entry(for: request.key, isUse: false) == nil)
        let statistics = transfers.storage.recorder.counters.statistics
        #expect(statistics.downloadsFinished == 1)
        #expect(statistics.bytesStored == 0)
        transfers.storage.disk.close()
    }
}
