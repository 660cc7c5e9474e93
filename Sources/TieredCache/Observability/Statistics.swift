extension MediaCache {
    /// The counters of a cache since it was opened.
    ///
    /// They are read one after the other while the cache works, so they may not match exactly.
    public struct Statistics: Hashable, Sendable {
        /// Lookups answered in full by the memory tier.
        public var memoryHits: Int64 = 0
        /// Lookups answered in full by the disk tier.
        public var diskHits: Int64 = 0
        /// Lookups that needed the origin, or failed because a request to it was not allowed.
        public var misses: Int64 = 0
        /// Validations of stored responses with the origin.
        public var revalidations: Int64 = 0
        /// Validations that the origin answered with 304, without a body.
        public var revalidationsUnchanged: Int64 = 0
        /// Hits that delivered stale bytes, as allowed by the rules or the policy.
        public var staleServed: Int64 = 0
        /// Body bytes delivered from memory.
        public var bytesFromMemory: Int64 = 0
        /// Body bytes delivered from disk.
        public var bytesFromDisk: Int64 = 0
        /// Body bytes received from origins, by downloads that have ended: a reader may have its
        /// last byte before.
        public var bytesFromOrigin: Int64 = 0
        /// Body bytes written to disk.
        public var bytesStored: Int64 = 0
        /// Bytes that eviction freed on disk.
        public var bytesEvicted: Int64 = 0
        /// Entries evicted from disk.
        public var entriesEvicted: Int64 = 0
        /// Downloads that sent a request to an origin.
        public var downloadsStarted: Int64 = 0
        /// Downloads that received all their bytes.
        public var downloadsFinished: Int64 = 0
        /// Downloads that failed; cancelled ones count as neither finished nor failed.
        public var downloadsFailed: Int64 = 0
        /// Requests that joined a running download instead of starting one.
        public var downloadsShared: Int64 = 0
        /// Failed writes or reads of the disk tier.
        public var storageFailures: Int64 = 0
        /// Entries on disk that were stale when they were replaced or removed.
        public var entriesExpired: Int64 = 0
        /// Entries on disk that were replaced while they were fresh.
        public var entriesReplaced: Int64 = 0
        /// Entries on disk that were removed on request.
        public var entriesRemoved: Int64 = 0
        /// Entries on disk that were damaged as a whole.
        public var entriesCorrupted: Int64 = 0
        /// Blocks that did not match their checksums; each is fetched again, the entry stays.
        public var blocksDamaged: Int64 = 0
        /// Misses because nothing was stored.
        public var missesAbsent: Int64 = 0
        /// Misses because the stored variant is selected by other field values.
        public var missesVariant: Int64 = 0
        /// Misses because the stored response had to be validated.
        public var missesStale: Int64 = 0
        /// Misses because only a part was stored.
        public var missesPartial: Int64 = 0
        /// Misses because blocks were damaged.
        public var missesDamaged: Int64 = 0
        /// Misses because the request forbade the use of a stored response.
        public var missesBypassed: Int64 = 0

        /// Creates statistics that are all zero.
        public init() {}

        /// Lookups answered in full by either tier.
        public var hits: Int64 { memoryHits + diskHits }

        /// Body bytes delivered from either tier.
        public var bytesFromCache: Int64 { bytesFromMemory + bytesFromDisk }

        /// Hits among lookups, from 0 to 1; nil before the first lookup.
        public var hitRatio: Double? { Self.ratio(hits, rest: misses) }

        /// Bytes from the cache among bytes delivered, from 0 to 1; nil before the first byte.
        public var byteHitRatio: Double? { Self.ratio(bytesFromCache, rest: bytesFromOrigin) }

        /// Hits and misses.
        public var lookups: Int64 { hits + misses }

        private static func ratio(_ part: Int64, rest: Int64) -> Double? {
            part + rest > 0 ? Double(part) / Double(part + rest) : nil
        }
    }
}

extension MediaCache.Statistics {
    /// The sums of both; wrap around, never trap.
    static func + (
        left: MediaCache.Statistics,
        right: MediaCache.Statistics
    ) -> MediaCache.Statistics {
        left.combined(with: right, by: &+)
    }

    /// The differences of both; wrap around, never trap.
    static func - (
        left: MediaCache.Statistics,
        right: MediaCache.Statistics
    ) -> MediaCache.Statistics {
        left.combined(with: right, by: &-)
    }

    private func combined(
        with other: MediaCache.Statistics,
        by operation: (Int64, Int64) -> Int64
    ) -> MediaCache.Statistics {
        var result = MediaCache.Statistics()
        for counter in StatisticsCounters.Counter.allCases {
            let field = counter.field
            result[keyPath: field] = operation(self[keyPath: field], other[keyPath: field])
        }
        return result
    }
}
