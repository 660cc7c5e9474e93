// The further keys under which the responses for one key are stored.
extension CacheKey {
    /// The largest number of responses for one key.
    static let variantLimit = 8
    /// The largest number of standalone parts for one key.
    static let partLimit = 4

    /// The keys of all but the first response; see ``Storage/key(for:of:)``.
    var variants: [CacheKey] { (1..<Self.variantLimit).map { CacheKey(variant: $0, of: self) } }

    /// The keys of the parts by themselves; see ``Storage/partKey(for:of:)``.
    var parts: [CacheKey] { (1...Self.partLimit).map { CacheKey(part: $0, of: self) } }

    /// The keys of all that is stored beside the first response.
    var further: [CacheKey] { variants + parts }
}
