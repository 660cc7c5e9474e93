public import CoreMetrics
public import TieredCache

/// Gives the statistics of a cache to swift-metrics.
///
/// Reads them from time to time and reports what was added: the cache itself does nothing for it,
/// and hits cost what they cost without it. Durations of requests come from
/// `MediaCache.Configuration.observeOrigins(tracer:metrics:)`.
///
/// ```swift
/// let metrics = CacheMetrics(of: cache)
/// let reporting = Task { await metrics.run() }
/// ```
public final class CacheMetrics: Sendable {
    private let cache: MediaCache
    private let time: any TimeSource
    private let counters: [(field: StatisticsField, counter: Counter)]
    private let entries: Gauge
    private let bytes: Gauge
    private let limit: Gauge
    /// The statistics that were reported last.
    private let reported = Guarded(MediaCache.Statistics())

    private typealias StatisticsField = any KeyPath<MediaCache.Statistics, Int64> & Sendable

    /// Makes counters and gauges; they are zero before ``run(every:)`` or ``report()``.
    ///
    /// - Parameters:
    ///   - cache: the cache.
    ///   - dimensions: added to those of each metric, for several caches in one process.
    ///   - factory: makes counters and gauges, by default that of the process.
    ///   - timeSource: the clock of ``run(every:)``.
    public init(
        of cache: MediaCache,
        dimensions: [(String, String)] = [],
        factory: any MetricsFactory = MetricsSystem.factory,
        timeSource: any TimeSource = SystemTimeSource()
    ) {
        self.cache = cache
        time = timeSource
        counters = Self.descriptions.map { description in
            let counter = Counter(
                label: "tieredcache_\(description.label)",
                dimensions: dimensions + description.dimensions,
                factory: factory
            )
            return (description.field, counter)
        }
        func gauge(_ label: String) -> Gauge {
            Gauge(
                label: "tieredcache_\(label)",
                dimensions: dimensions,
                aggregate: false,
                factory: factory
            )
        }
        entries = gauge("disk_entries")
        bytes = gauge("disk_bytes")
        limit = gauge("disk_limit_bytes")
    }

    /// Reports at once, at each interval, and when the task is cancelled, which ends it.
    ///
    /// - Parameter interval: the time between reports, 10 s by default.
    public func run(every interval: Duration = .seconds(10)) async {
        while !Task.isCancelled {
            await report()
            do {
                try await time.sleep(for: interval)
            } catch {
                // Only a cancellation ends a sleep early; the last report follows.
                break
            }
        }
        await report()
    }

    /// Reports what has changed since the last report; the gauges also ask the disk tier.
    ///
    /// Without a usable disk tier the gauges keep their values.
    public func report() async {
        reportCounters()
        do throws(CacheError) {
            let usage = try await cache.usage()
            entries.record(Int64(usage.entries))
            bytes.record(usage.bytes)
            limit.record(usage.limit)
        } catch {
            // The reason is in ``MediaCache/storageError``.
        }
    }

    private func reportCounters() {
        // Read under the lock: of two calls at once the later one has the later statistics.
        let (before, now) = reported.withLock { reported in
            let before = reported
            reported = cache.statistics
            return (before, reported)
        }
        for (field, counter) in counters {
            let added = now[keyPath: field] - before[keyPath: field]
            if added > 0 { counter.increment(by: added) }
        }
    }

    private typealias Description = (
        label: String, dimensions: [(String, String)], field: StatisticsField
    )

    private static let descriptions: [Description] = [
        ("hits", [("tier", "memory")], \.memoryHits),
        ("hits", [("tier", "disk")], \.diskHits),
        ("misses", [("reason", "absent")], \.missesAbsent),
        ("misses", [("reason", "variant")], \.missesVariant),
        ("misses", [("reason", "stale")], \.missesStale),
        ("misses", [("reason", "partial")], \.missesPartial),
        ("misses", [("reason", "damaged")], \.missesDamaged),
        ("misses", [("reason", "bypassed")], \.missesBypassed),
        ("revalidations", [], \.revalidations),
        ("revalidations_unchanged", [], \.revalidationsUnchanged),
        ("stale_served", [], \.staleServed),
        ("body_bytes", [("source", "memory")], \.bytesFromMemory),
        ("body_bytes", [("source", "disk")], \.bytesFromDisk),
        ("body_bytes", [("source", "origin")], \.bytesFromOrigin),
        ("stored_bytes", [], \.bytesStored),
        ("evicted_bytes", [], \.bytesEvicted),
        ("removed_entries", [("cause", "size")], \.entriesEvicted),
        ("removed_entries", [("cause", "expired")], \.entriesExpired),
        ("removed_entries", [("cause", "replaced")], \.entriesReplaced),
        ("removed_entries", [("cause", "explicit")], \.entriesRemoved),
        ("removed_entries", [("cause", "corrupted")], \.entriesCorrupted),
        ("damaged_blocks", [], \.blocksDamaged),
        ("downloads_started", [], \.downloadsStarted),
        ("downloads_shared", [], \.downloadsShared),
        ("downloads_ended", [("result", "finished")], \.downloadsFinished),
        ("downloads_ended", [("result", "failed")], \.downloadsFailed),
        ("storage_failures", [], \.storageFailures),
    ]
}
