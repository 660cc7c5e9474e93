import Synchronization

/// Counts the delivered body bytes by where they came from.
///
/// Written by the one reader of a body, read from any thread.
final class ByteCounts: Sendable {
    private let cache = Atomic<Int64>(0)
    private let origin = Atomic<Int64>(0)
    private let isLastOfOrigin = Atomic<Bool>(false)

    /// Delivered bytes that were held when the reader reached them.
    var fromCache: Int64 { cache.load(ordering: .relaxed) }

    /// Delivered bytes that had to be fetched.
    var fromOrigin: Int64 { origin.load(ordering: .relaxed) }

    /// Whether the bytes delivered last had to be fetched; nil before the first.
    var isLastFromOrigin: Bool? {
        fromCache + fromOrigin > 0 ? isLastOfOrigin.load(ordering: .relaxed) : nil
    }

    func add(fromCache count: Int64) {
        if count > 0 { isLastOfOrigin.store(false, ordering: .relaxed) }
        cache.wrappingAdd(count, ordering: .relaxed)
    }

    func add(fromOrigin count: Int64) {
        if count > 0 { isLastOfOrigin.store(true, ordering: .relaxed) }
        origin.wrappingAdd(count, ordering: .relaxed)
    }
}
