extension MediaCache {
    /// An event that concerns an entry or the whole cache, for monitoring and diagnosis.
    ///
    /// New kinds may be added, so a `switch` over ``kind`` in another package needs an
    /// `@unknown default`.
    public struct Event: Sendable {
        /// A tier of the cache.
        public enum Tier: String, Hashable, Sendable, CaseIterable, CustomStringConvertible {
            /// The memory tier.
            case memory
            /// The disk tier.
            case disk

            /// The case's name.
            public var description: String { rawValue }
        }

        /// Why a lookup found no usable response.
        @nonexhaustive
        public enum MissReason: String, Hashable, Sendable, CaseIterable, CustomStringConvertible {
            /// Nothing is stored under the key.
            case absent
            /// The stored variant is selected by other field values (RFC 9111 §4.1).
            case variant
            /// The stored response must not be used without validation.
            case stale
            /// Only part of the wanted range is stored.
            case partial
            /// Blocks were stored, but did not match their checksums.
            case damaged
            /// The request's policy, method or fields forbid the use of a stored response.
            case bypassed

            /// The case's name.
            public var description: String { rawValue }
        }

        /// Why an entry, or part of it, was evicted without a request for its removal.
        @nonexhaustive
        public enum EvictionReason: String, Hashable, Sendable, CaseIterable,
            CustomStringConvertible
        {
            /// The tier needed space below its limit.
            case size
            /// The machine is short of memory.
            case pressure
            /// The volume is short of free space.
            case diskFloor
            /// It had expired.
            case expired
            /// A newer body replaced it.
            case replaced
            /// Its file was damaged or missing.
            case damaged

            /// The case's name.
            public var description: String { rawValue }
        }

        /// The kind of an event.
        @nonexhaustive
        public enum Kind: Sendable {
            /// A lookup found a complete response in a tier; `isStale` if it was stale.
            case hit(Tier, isStale: Bool)
            /// A lookup found no usable response.
            case missed(MissReason)
            /// Bytes of a body were stored in a tier.
            case stored(Tier, bytes: Int64)
            /// A tier has evicted an entry, or part of it.
            case evicted(Tier, EvictionReason, bytes: Int64)
            /// The entry, or everything, was removed on request.
            case removed
            /// The origin has answered a validation; `isUnchanged` if the stored response is
            /// current.
            case revalidated(isUnchanged: Bool)
            /// A request to the origin starts, for the bytes from `offset`.
            case downloadStarted(offset: Int64)
            /// Bytes up to `offset` have arrived; the complete length is nil while it is unknown.
            case downloadProgressed(offset: Int64, completeLength: Int64?)
            /// A download has received all its bytes; `bytes` came from the origin.
            case downloadFinished(bytes: Int64)
            /// A download has failed.
            case downloadFailed(CacheError)
            /// An attempt has failed; the next one follows after `delay`.
            case downloadRetrying(attempt: Int, delay: Duration, CacheError)
            /// The disk has refused bytes; they were delivered nevertheless.
            case storageFailed(CacheError)
            /// The memory tier was reduced to `limit` bytes because the machine is short of memory.
            case memoryPressure(limit: Int64)
        }

        /// The entry, or nil if the event concerns the whole cache.
        public let key: CacheKey?
        /// The kind of the event, with its details.
        public let kind: Kind

        /// Creates an event.
        public init(key: CacheKey?, _ kind: Kind) {
            self.key = key
            self.kind = kind
        }
    }
}

extension MediaCache.Event: CustomStringConvertible {
    /// One line for logs and people; URLs without userinfo and query.
    public var description: String {
        key.map { "\($0.redacted): \(kind)" } ?? "\(kind)"
    }
}
