#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// One writer at a time per entry name: creating, replacing, removing, and writing a record.
///
/// Not a `Guarded` value, since what it guards are files: it is held over system calls that may
/// block. Only calls that may block anyway take it, never a hit. Turns do not nest.
final class WriteTurns: @unchecked Sendable {
    // Unchecked: the mutexes are made for use from several threads and never move.
    private static let count = 128
    private let mutexes = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: count)

    init() {
        for index in 0..<Self.count {
            (mutexes + index).initialize(to: pthread_mutex_t())
            pthread_mutex_init(mutexes + index, nil)
        }
    }

    deinit {
        for index in 0..<Self.count {
            pthread_mutex_destroy(mutexes + index)
        }
        mutexes.deallocate()
    }

    /// Runs `body` while no other body does, where turns are taken in no other way.
    func takeForAll<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // One turn for all: the name only has to be the same each time.
        try take(EntryName(digest: MD5Digest(high: 0, low: 0)), body)
    }

    /// Runs `body` while no other body runs for the same name.
    func take<Result, Failure: Error>(
        _ name: EntryName,
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let mutex = mutexes + Int(name.digest.low % UInt64(Self.count))
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }
}
