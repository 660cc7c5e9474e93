import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Downloads from an origin that cuts, fails, lies and changes, drawn from a seed.
@Suite("Downloader in chaos", .timeLimit(.minutes(10)))
struct DownloaderChaosTests {
    /// The origin's moods; the representation may change between any two requests.
    private struct Chaos {
        var random: SplitMix
        var model: ScriptedOriginModel
        let mayChange: Bool
        let lies: [ScriptedOriginModel.Lie]

        init(seed: UInt64) {
            random = SplitMix(seed: seed)
            let length = Int.random(in: 0...3000, using: &random)
            model = ScriptedOriginModel(length: length)
            model.chunkSize = Int.random(in: 1...700, using: &random)
            if Int.random(in: 0..<6, using: &random) == 0 { model.tagPrefix = "W/" }
            if Int.random(in: 0..<6, using: &random) == 0 { model.tagPrefix = nil }
            mayChange = Bool.random(using: &random)
            lies = Bool.random(using: &random) ? ScriptedOriginModel.Lie.allCases : [.none]
        }

        mutating func answer(_ request: TransportRequest) -> ScriptedResponse {
            switch Int.random(in: 0..<12, using: &random) {
            case 0: return ScriptedResponse(failure: .connect)
            case 1: return ScriptedResponse(failure: .closedEarly)
            case 2:
                return ScriptedResponse(
                    status: [500, 503, 429].randomElement(using: &random) ?? 500
                )
            case 3 where mayChange:
                model.version += 1
                model.length = Int.random(in: 0...3000, using: &random)
            default: break
            }
            model.lie = lies.randomElement(using: &random) ?? .none
            model.cutAfter =
                Bool.random(using: &random) ? Int.random(in: 0...1500, using: &random) : nil
            return model.answer(request)
        }
    }

    @Test("The sink ends with one generation's bytes, or there is a clear error", arguments: 0..<8)
    func oneGeneration(shard: UInt64) async throws {
        var completed = 0
        for index in 0..<60 {
            let seed = shard * 1000 + UInt64(index)
            completed += try await download(seed: seed) ? 1 : 0
        }
        #expect(completed > 20, "too few downloads of shard \(shard) got through")
    }

    /// One download; true where it completed.
    private func download(seed: UInt64) async throws -> Bool {
        let chaos = Guarded(Chaos(seed: seed))
        let transport = ScriptedTransport { request, _ in
            chaos.withLock { $0.answer(request) }
        }
        let sink = RecordingSink()
        var plan = DownloadPlan(target: try TargetURI("http://origin.example/a"))
        plan.policy.maximumAttempts = 8
        let result: Result<DownloadOutcome, CacheError>
        do {
            result = .success(
                try await Downloader(transport: transport, time: InstantTime(), jitter: { 0.5 })
                    .run(plan, into: sink)
            )
        } catch {
            result = .failure(error)
        }
        let snapshot = sink.snapshot
        // A lie may repeat wrong bytes only where it also repeats the tag: the model never does.
        #expect(snapshot.complaints.isEmpty, "seed \(seed): \(snapshot.complaints)")
        let stored = sink.run()
        let versions = (1...chaos.withLock { $0.model.version }).filter { version in
            stored == ScriptedOriginModel.bytes(version: version, range: 0..<stored.count)
        }
        #expect(!versions.isEmpty, "seed \(seed): bytes of several generations")
        switch result {
        case .success(let outcome):
            guard case .completed(let length) = outcome.end else {
                guard case .unsuccessful = outcome.end else {
                    Issue.record("seed \(seed): \(outcome.end)")
                    return false
                }
                return false
            }
            #expect(length == Int64(stored.count), "seed \(seed)")
            #expect(
                outcome.bytesReceived - outcome.bytesRefetched == Int64(stored.count),
                "seed \(seed): \(outcome)"
            )
            return true
        case .failure(let error):
            #expect(error.code == .originFailed, "seed \(seed): \(error)")
            return false
        }
    }
}
