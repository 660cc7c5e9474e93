// The further keys under which the responses for one key are stored.
extension CacheKey {
    /// The largest number of responses for one key.
    static let variantLimit = 8

    /// The keys of all but the first response; see ``Storage/key(for:of:)``.
    var variants: [CacheKey] { (1..<Self.variantLimit).map { CacheKey(variant: $0, of: self) } }
}
