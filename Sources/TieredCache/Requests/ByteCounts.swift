/// The numbers of delivered body bytes by source.
struct ByteCounts: Sendable {
    /// Delivered bytes that were stored when the reader reached them.
    private(set) var fromCache: Int64 = 0
    /// Delivered bytes that were fetched.
    private(set) var fromOrigin: Int64 = 0
    private var isLastOfOrigin = false

    /// Whether the last bytes delivered were fetched; nil before the first.
    var isLastFromOrigin: Bool? { fromCache + fromOrigin > 0 ? isLastOfOrigin : nil }

    mutating func add(fromCache count: Int64) {
        if count > 0 { isLastOfOrigin = false }
        fromCache += count
    }

    mutating func add(fromOrigin count: Int64) {
        if count > 0 { isLastOfOrigin = true }
        fromOrigin += count
    }
}
