extension MediaCache {
    /// What a cache has done since it was opened.
    ///
    /// The numbers are read one after the other while the cache works, so they may be apart by what
    /// happened in between.
    public struct Statistics: Hashable, Sendable {
        /// Lookups answered in full by the memory tier.
        public var memoryHits: Int64 = 0
        /// Lookups answered in full by the disk tier.
        public var diskHits: Int64 = 0
        /// Lookups that needed the origin, or failed because it was not allowed to be asked.
        public var misses: Int64 = 0
        /// Stored responses that the origin was asked about.
        public var revalidations: Int64 = 0
        /// Revalidations that the origin answered with 304: no body was sent.
        public var revalidationsUnchanged: Int64 = 0
        /// Hits that delivered stale bytes, because the rules or the policy allowed it.
        public var staleServed: Int64 = 0
        /// Body bytes delivered from memory.
        public var bytesFromMemory: Int64 = 0
        /// Body bytes delivered from disk.
        public var bytesFromDisk: Int64 = 0
        /// Body bytes received from origins.
        public var bytesFromOrigin: Int64 = 0
        /// Body bytes written to disk.
        public var bytesStored: Int64 = 0
        /// Bytes that eviction freed on disk.
        public var bytesEvicted: Int64 = 0
        /// Entries evicted from disk.
        public var entriesEvicted: Int64 = 0
        /// Downloads that asked an origin.
        public var downloadsStarted: Int64 = 0
        /// Downloads that brought what they were to bring.
        public var downloadsFinished: Int64 = 0
        /// Downloads that gave up; cancelled ones are in neither number.
        public var downloadsFailed: Int64 = 0
        /// Requests that joined a download under way instead of starting one.
        public var downloadsShared: Int64 = 0
        /// Times that the disk refused something.
        public var storageFailures: Int64 = 0
        /// Entries on disk that were stale when something else took their place.
        public var entriesExpired: Int64 = 0
        /// Entries on disk that something newer took the place of while they were fresh.
        public var entriesReplaced: Int64 = 0
        /// Entries on disk that somebody removed.
        public var entriesRemoved: Int64 = 0
        /// Entries on disk that were not what had been written, as a whole.
        public var entriesCorrupted: Int64 = 0
        /// Blocks that did not match their checksums; each is fetched again, the entry stays.
        public var blocksDamaged: Int64 = 0
        /// Misses because nothing was stored.
        public var missesAbsent: Int64 = 0
        /// Misses because what is stored answers requests with other field values.
        public var missesVariant: Int64 = 0
        /// Misses because what is stored had to be validated.
        public var missesStale: Int64 = 0
        /// Misses because only a part was stored.
        public var missesPartial: Int64 = 0
        /// Misses because blocks were damaged.
        public var missesDamaged: Int64 = 0
        /// Misses because the request forbade using what is stored.
        public var missesBypassed: Int64 = 0

        /// Creates statistics that are all zero.
        public init() {}

        /// Lookups answered in full by either tier.
        public var hits: Int64 { memoryHits + diskHits }

        /// Body bytes delivered from either tier.
        public var bytesFromCache: Int64 { bytesFromMemory + bytesFromDisk }

        /// Hits among lookups, from 0 to 1; nil before the first lookup.
        public var hitRatio: Double? { Self.ratio(hits, misses) }

        /// Bytes from the cache among bytes delivered, from 0 to 1; nil before the first byte.
        public var byteHitRatio: Double? { Self.ratio(bytesFromCache, bytesFromOrigin) }

        /// Hits and misses.
        public var lookups: Int64 { hits + misses }

        private static func ratio(_ part: Int64, _ rest: Int64) -> Double? {
            part + rest > 0 ? Double(part) / Double(part + rest) : nil
        }
    }
}

extension MediaCache.Statistics {
    /// Both counts together; wraps around, never traps.
    static func + (
        left: MediaCache.Statistics,
        right: MediaCache.Statistics
    ) -> MediaCache.Statistics {
        left.combined(right, &+)
    }

    /// What one has that the other has not.
    static func - (
        left: MediaCache.Statistics,
        right: MediaCache.Statistics
    ) -> MediaCache.Statistics {
        left.combined(right, &-)
    }

    private func combined(
        _ other: MediaCache.Statistics,
        _ operation: (Int64, Int64) -> Int64
    ) -> MediaCache.Statistics {
        var result = MediaCache.Statistics()
        for counter in StatisticsCounters.Counter.allCases {
            let field = counter.field
            result[keyPath: field] = operation(self[keyPath: field], other[keyPath: field])
        }
        return result
    }
}
