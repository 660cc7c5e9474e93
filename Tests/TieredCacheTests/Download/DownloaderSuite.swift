import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// What suites of the downloader share: a plan, an origin's model, a run without waiting.
protocol DownloaderSuite {}

extension DownloaderSuite {
    static var length: Int { 5000 }

    func plan(
        range: Range<Int64> = 0..<Int64.max,
        generation: Generation? = nil
    ) throws -> DownloadPlan {
        DownloadPlan(
            target: try TargetURI("https://user:word@origin.example/a?secret=1"),
            range: range,
            generation: generation
        )
    }

    func generation(of model: ScriptedOriginModel) throws -> Generation {
        let tag = try #require(model.entityTag)
        return Generation(
            validator: Validator(of: [.eTag: tag], responseTime: WallTime(seconds: 0)),
            completeLength: Int64(model.length)
        )
    }

    func run(
        _ plan: DownloadPlan,
        into sink: RecordingSink,
        _ transport: ScriptedTransport,
        time: any TimeSource = InstantTime()
    ) async throws(CacheError) -> DownloadOutcome {
        try await Downloader(transport: transport, time: time, jitter: { 1 })
            .run(plan, into: sink)
    }

    func model() -> ScriptedOriginModel { ScriptedOriginModel(length: Self.length) }

    func bytes(_ range: Range<Int> = 0..<5000, version: UInt8 = 1) -> [UInt8] {
        ScriptedOriginModel.bytes(version: version, range: range)
    }
}
