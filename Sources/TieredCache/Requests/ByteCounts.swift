/// The delivered body bytes by where they came from.
struct ByteCounts: Sendable {
    /// Delivered bytes that were stored when the reader reached them.
    private(set) var fromCache: Int64 = 0
    /// Delivered bytes that had to be fetched.
    private(set) var fromOrigin: Int64 = 0
    private var isLastOfOrigin = false

    /// Whether the bytes delivered last had to be fetched; nil before the first.
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
