extension MediaCache {
    /// Something that happened to an entry, for whoever wants to watch or to explain it afterwards.
    ///
    /// New kinds may come, so a `switch` over ``kind`` in another package needs an `@unknown default`.
    public struct Event: Sendable {
        /// A place where bytes are kept.
        public enum Tier: String, Hashable, Sendable, CaseIterable, CustomStringConvertible {
            /// The memory tier.
            case memory
            /// The disk tier.
            case disk

            /// The case's name.
            public var description: String { rawValue }
        }

        /// Why a lookup did not answer.
        @nonexhaustive
        public enum MissReason: String, Hashable, Sendable, CaseIterable, CustomStringConvertible {
            /// Nothing is stored under the key.
            case absent
            /// What is stored answers requests with other field values (RFC 9111 §4.1).
            case variant
            /// What is stored may not be used without asking the origin.
            case stale
            /// Only part of the wanted range is stored.
            case partial
            /// Blocks were stored, but did not match their checksums.
            case damaged
            /// The request's policy, method or fields forbid using what is stored.
            case bypassed

            /// The case's name.
            public var description: String { rawValue }
        }

        /// Why an entry, or part of it, was given up though nobody asked for its removal.
        @nonexhaustive
        public enum EvictionReason: String, Hashable, Sendable, CaseIterable,
            CustomStringConvertible
        {
            /// The tier needed room below its limit.
            case size
            /// The machine is short of memory.
            case pressure
            /// The volume is short of free space.
            case diskFloor
            /// Its time had passed.
            case expired
            /// A newer body took its place.
            case replaced
            /// Its file was damaged or missing.
            case damaged

            /// The case's name.
            public var description: String { rawValue }
        }

        /// What happened.
        @nonexhaustive
        public enum Kind: Sendable {
            /// A lookup answered in full from a tier; `isStale` if stale bytes were allowed.
            case hit(Tier, isStale: Bool)
            /// A lookup did not answer.
            case missed(MissReason)
            /// Bytes of a body were stored in a tier.
            case stored(Tier, bytes: Int64)
            /// A tier gave an entry up, or part of it.
            case evicted(Tier, EvictionReason, bytes: Int64)
            /// Somebody asked for the removal.
            case removed
            /// The origin was asked whether the stored response still holds; `isUnchanged` if it does.
            case revalidated(isUnchanged: Bool)
            /// A request to the origin begins, for the bytes from `offset` on.
            case downloadStarted(offset: Int64)
            /// Bytes up to `offset` have arrived; the complete length is nil while it is unknown.
            case downloadProgressed(offset: Int64, completeLength: Int64?)
            /// A download brought what it was to bring; `bytes` came from the origin.
            case downloadFinished(bytes: Int64)
            /// A download has given up.
            case downloadFailed(CacheError)
            /// An attempt failed; the next one follows after `delay`.
            case downloadRetrying(attempt: Int, delay: Duration, CacheError)
            /// The disk refused something; the bytes were delivered all the same.
            case storageFailed(CacheError)
            /// The memory tier shrank to `limit` bytes because the machine is short of memory.
            case memoryPressure(limit: Int64)
        }

        /// The entry, or nil where the event concerns the whole cache.
        public let key: CacheKey?
        /// What happened.
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
