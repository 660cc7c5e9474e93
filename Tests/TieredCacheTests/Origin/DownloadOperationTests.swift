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
        try transfers(
            over: ScriptedTransport { _, _ in
                ScriptedResponse(
                    status: 200,
                    fields: [.cacheControl: cacheControl, .contentLength: "4096"],
                    steps: [.bytes([UInt8](repeating: 7, count: 4096))]
                )
            }
        )
    }

    private static func transfers(over transport: some Transport) throws -> Transfers {
        var parts = EngineParts()
        parts.fileSystem = InMemoryFileSystem()
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.minimumFreeDisk = 0
        configuration.networkMonitor = nil
        configuration.respondsToMemoryPressure = false
        configuration.transport = transport
        let rules = CacheRules(isShared: false, applicationLifetime: nil)
        let writers = parts.makeExecutor("tc-write")
        let io = parts.makeExecutor("tc-io")
        let storage = try Storage(
            configuration,
            parts: parts,
            rules: rules,
            io: io,
            writers: writers,
            recorder: Recorder(configuration, writers: writers)
        )
        let origins = try Origins(configuration, rules: rules, storage: storage) { 0.5 }
        return Transfers(configuration, storage: storage, origins: origins)
    }

    private static func begin(_ request: CacheRequest, _ transfers: Transfers) -> Subscription {
        let shared = transfers.shared(for: request)
        let range = FirstRange.ofTransfer(for: request.range)
        let operation = DownloadOperation(
            storage: transfers.storage,
            origins: transfers.origins,
            shared: shared,
            group: shared.group,
            request: request,
            plan: transfers.origins.plan(request, range: range, reason: .uriMiss),
            base: nil,
            stored: nil
        )
        return transfers.join(operation, at: range.lowerBound)
    }

    /// Runs a download to its end.
    private static func download(
        _ request: CacheRequest,
        _ transfers: Transfers
    ) async throws -> SharedTransfers.Outcome? {
        let shared = transfers.shared(for: request)
        let share = begin(request, transfers)
        while share.outcome == nil {
            let seen = shared.signal.version
            guard share.outcome == nil else { break }
            await shared.signal.wait(after: seen)
        }
        try share.outcome?.get()
        return share.context?.outcome
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
            case .passing(_, let bypass) = try await Self.download(request, transfers),
            case .forbidden = bypass.reason
        else {
            Issue.record("the answer is stored")
            return
        }
        #expect(bypass.completeLength == 4096)
        #expect(try await transfers.storage.entry(for: request.key, isUse: false) == nil)
        let statistics = transfers.storage.recorder.counters.statistics
        #expect(statistics.downloadsFinished == 1)
        #expect(statistics.bytesStored == 0)
        transfers.storage.disk.close()
    }

    /// The ways in which a response can become an entry.
    enum Answer: String, CaseIterable {
        case whole
        case empty
        case errorStatus

        var head: HTTPResponse {
            var head = HTTPResponse(status: .ok)
            head.headerFields[.cacheControl] = "max-age=60"
            head.headerFields[.contentLength] = self == .empty ? "0" : "4096"
            if self == .errorStatus { head.status = .notFound }
            return head
        }
    }

    /// Answers when the request has been left, as a transport may whose bytes came just before.
    private final class LateTransport: Transport {
        private final class Body: TransportBody {
            private let didAsk: @Sendable () -> Void

            init(didAsk: @escaping @Sendable () -> Void) {
                self.didAsk = didAsk
            }

            func next() async throws(TransportError) -> BodyChunk? {
                didAsk()
                throw TransportError(.cancelled, "the request was left")
            }

            func cancel() {}
        }

        let isAsked = Latch<Void>()
        let isLeft = Latch<Void>()
        let didAsk = Guarded<@Sendable () -> Void>({})
        private let head: HTTPResponse

        init(_ head: HTTPResponse) {
            self.head = head
        }

        func send(_: TransportRequest) async throws(TransportError) -> TransportResponse {
            isAsked.complete(with: .success(()))
            while isLeft.outcome == nil { await Task.yield() }
            return TransportResponse(head: head, body: Body { [self] in didAsk.withLock(\.self)() })
        }

        func shutdown() async {}
    }

    @Test(
        "An abandoned transfer creates no entry: a removal may have followed",
        arguments: Answer.allCases
    )
    func abandoned(_ answer: Answer) async throws {
        let transport = LateTransport(answer.head)
        let transfers = try Self.transfers(over: transport)
        let disk = transfers.storage.disk
        let created = Guarded(0)
        let count: @Sendable () -> Void = {
            let entries = disk.openStore?.state.withLock { $0.open.residents.all.count }
            created.withLock { $0 += entries ?? 0 }
        }
        transport.didAsk.withLock { $0 = count }
        let request = try CacheRequest("http://origin.example/film")
        let share = Self.begin(request, transfers)
        _ = await transport.isAsked.wait()
        share.cancel()
        transport.isLeft.complete(with: .success(()))
        await transfers.shutdown()
        count()
        #expect(created.withLock(\.self) == 0)
        #expect(try disk.store().usage().entries == 0)
        // Its response was not refused by the disk.
        #expect(transfers.storage.recorder.counters.statistics.storageFailures == 0)
        disk.close()
    }
}
