import HTTPTypes
import InMemoryTracing
import MetricsTestKit
import SystemPackage
import TieredCache
import TieredCacheObservability
import TieredCacheTesting

/// A cache on a script, with a tracer and a factory in memory.
struct ObservedCache {
    let cache: MediaCache
    let transport: ScriptedTransport
    let time = ManualTimeSource()
    let tracer = InMemoryTracer()
    let metrics = TestMetrics()

    init(
        isObserved: Bool = true,
        monitor: (any NetworkMonitor)? = nil,
        script: @escaping ScriptedTransport.Script
    ) throws {
        transport = ScriptedTransport(time: time, script: script)
        var configuration = MediaCache.Configuration(path: "/cache")
        configuration.minimumFreeDisk = 0
        configuration.networkMonitor = monitor
        configuration.respondsToMemoryPressure = false
        configuration.retries = 1
        configuration.timeSource = time
        configuration.transport = transport
        if isObserved { configuration.observeOrigins(tracer: tracer, metrics: metrics) }
        cache = try MediaCache(configuration, fileSystem: InMemoryFileSystem())
    }

    static func run(
        isObserved: Bool = true,
        monitor: (any NetworkMonitor)? = nil,
        _ script: @escaping ScriptedTransport.Script,
        _ body: (ObservedCache) async throws -> Void
    ) async throws {
        let observed = try ObservedCache(
            isObserved: isObserved,
            monitor: monitor,
            script: script
        )
        try await body(observed)
        await observed.cache.shutdown()
    }

    /// The script of a small body that may be stored.
    static func whole(_: TransportRequest, _: Int) -> ScriptedResponse {
        ScriptedResponse(
            status: 200,
            fields: [.cacheControl: "max-age=60", .contentLength: "3", .eTag: "\"1\""],
            steps: [.bytes([1, 2, 3])]
        )
    }
}
