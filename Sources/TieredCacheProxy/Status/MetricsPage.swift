import HTTPTypes
import NIOCore
import TieredCache

/// The metrics of the cache in the text format of Prometheus.
enum MetricsPage {
    /// The response to a scrape.
    ///
    /// - Parameters:
    ///   - statistics: the statistics of the cache.
    ///   - usage: the usage of the disk tier; nil if the disk is not usable.
    /// - Returns: the response.
    static func answer(_ statistics: MediaCache.Statistics, usage: DiskUsage?) -> WholeResponse {
        let text = text(statistics, usage: usage)
        return WholeResponse(
            head: ResponseHead(
                status: 200,
                fields: [
                    .contentType: "text/plain; version=0.0.4; charset=utf-8",
                    .cacheControl: "no-store",
                ],
                framing: .length(Int64(text.utf8.count))
            ),
            body: ByteBuffer(string: text)
        )
    }

    /// The text of the page.
    static func text(_ statistics: MediaCache.Statistics, usage: DiskUsage?) -> String {
        var text = ""
        for (name, help, value) in counters(statistics) {
            text += "# HELP tieredcache_\(name) \(help)\n# TYPE tieredcache_\(name) counter\n"
            text += "tieredcache_\(name) \(value)\n"
        }
        for (name, help, value) in usage.map(gauges) ?? [] {
            text += "# HELP tieredcache_\(name) \(help)\n# TYPE tieredcache_\(name) gauge\n"
            text += "tieredcache_\(name) \(value)\n"
        }
        return text
    }

    private static func counters(_ statistics: MediaCache.Statistics) -> [(String, String, Int64)] {
        [
            ("memory_hits_total", "Lookups answered by the memory tier.", statistics.memoryHits),
            ("disk_hits_total", "Lookups answered by the disk tier.", statistics.diskHits),
            ("misses_total", "Lookups that needed the origin.", statistics.misses),
            ("revalidations_total", "Stored responses asked about.", statistics.revalidations),
            (
                "revalidations_unchanged_total", "Revalidations answered with 304.",
                statistics.revalidationsUnchanged
            ),
            ("stale_served_total", "Hits that were stale.", statistics.staleServed),
            ("memory_bytes_total", "Body bytes from memory.", statistics.bytesFromMemory),
            ("disk_bytes_total", "Body bytes from disk.", statistics.bytesFromDisk),
            ("origin_bytes_total", "Body bytes received from origins.", statistics.bytesFromOrigin),
            ("stored_bytes_total", "Body bytes written to disk.", statistics.bytesStored),
            ("evicted_bytes_total", "Bytes that eviction freed.", statistics.bytesEvicted),
            ("evicted_entries_total", "Entries evicted.", statistics.entriesEvicted),
            ("downloads_started_total", "Downloads started.", statistics.downloadsStarted),
            ("downloads_finished_total", "Downloads finished.", statistics.downloadsFinished),
            ("downloads_failed_total", "Downloads that gave up.", statistics.downloadsFailed),
            ("downloads_shared_total", "Requests that joined one.", statistics.downloadsShared),
            ("storage_failures_total", "Refusals of the disk.", statistics.storageFailures),
        ]
    }

    private static func gauges(_ usage: DiskUsage) -> [(String, String, Int64)] {
        [
            ("entries", "Entries on disk.", Int64(usage.entries)),
            ("disk_bytes", "Bytes allocated on disk.", usage.bytes),
            ("disk_limit_bytes", "The most that the disk tier may occupy.", usage.limit),
        ]
    }
}
