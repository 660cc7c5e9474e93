import Synchronization

/// Counts the delivered body bytes by where they came from.
///
/// Written by the one reader of a body, read from any thread.
final class ByteCounts: Sendable {
    private let cache = Atomic<Int64>(0)
    private let origin = Atomic<Int64>(0)

    /// Delivered bytes that were held when the reader reached them.
    var fromCache: Int64 { cache.load(ordering: .relaxed) }

    /// Delivered bytes that had to be fetched.
    var fromOrigin: Int64 { origin.load(ordering: .relaxed) }

    func add(fromCache count: Int64) {
        cache.wrappingAdd(count, ordering: .relaxed)
    }

    func add(fromOrigin count: Int64) {
        origin.wrappingAdd(count, ordering: .relaxed)
    }
}
