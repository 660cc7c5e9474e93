public import HTTPCaching

/// The cache key of an entry: at least method and target URI (RFC 9111 §2).
///
/// Two keys are equal when their UTF-8 bytes are equal; Unicode's canonical equivalence, by which
/// Swift compares strings, would join what an origin keeps apart. The hash is computed once, when
/// the key is made; keep a key that is looked up often.
public struct CacheKey: Hashable, Sendable, CustomStringConvertible {
    /// The whole key, stored with the entry and compared at every lookup (invariant 1).
    public let string: String
    /// A hash of the bytes, seeded per process so that collisions cannot be crafted.
    @usableFromInline package let hash: UInt64

    /// The key of a GET of `target`: its text, without userinfo and fragment.
    ///
    /// - Parameters:
    ///   - target: the URI that the application asks for, before any redirect.
    ///   - partition: keeps entries apart that share a URI, such as those of two users.
    public init(_ target: TargetURI, partition: String? = nil) {
        self.init(string: target.string, partition: partition)
    }

    /// A key that the application chooses: for URLs whose signature rotates, for POST (put the
    /// body, or its digest, into `name`), for anything that is not a URL.
    ///
    /// `name` may be of any length and hold any Unicode. It never equals the key of a URL, and
    /// keys of different methods differ.
    public init(explicit name: String, method: String = "GET", partition: String? = nil) {
        // A method is a token (RFC 9110 §9.1). What is none gets its length in front, so that it
        // cannot pretend to be a method and the beginning of a name.
        let isPlain = method.utf8.allSatisfy { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: ":") }
        let prefix = isPlain ? method : "method \(method.utf8.count):\(method)"
        self.init(string: "\(prefix) key:\(name)", partition: partition)
    }

    /// The key of a further response for `primary`, selected by other request fields (`Vary`).
    init(variant number: Int, of primary: CacheKey) {
        self.init(string: "variant \(number) \(primary.string)", partition: nil)
    }

    /// Restores a key from ``string``, as the disk tier does.
    package init(stored string: String) {
        var string = string
        string.makeContiguousUTF8()
        self.string = string
        self.hash = UTF8Bytes.of(string) { UTF8Bytes.hash($0) }
    }

    private init(string: String, partition: String?) {
        guard let partition else {
            self.init(stored: string)
            return
        }
        // The length keeps ("a", "bc") and ("ab", "c") apart whatever characters they hold.
        self.init(stored: "partition \(partition.utf8.count):\(partition) \(string)")
    }

    /// The whole key, as in ``string``.
    ///
    /// A signed URL's query is part of it: do not log it.
    public var description: String { string }

    /// Compares the UTF-8 bytes.
    @inlinable
    public static func == (left: CacheKey, right: CacheKey) -> Bool {
        left.hash == right.hash && UTF8Bytes.areEqual(left.string, right.string)
    }

    /// Feeds the hash computed when the key was made.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(hash)
    }

    /// The key's bytes.
    package func withUTF8<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        UTF8Bytes.of(string, body: body)
    }
}
