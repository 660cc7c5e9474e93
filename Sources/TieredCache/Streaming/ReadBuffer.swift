import FoundationEssentials

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Memory for reads that becomes a `Data` without a copy; allocated uninitialized at first use.
final class ReadBuffer: @unchecked Sendable {
    // Unchecked: one task at a time writes to it, and none after `data(count:)`.
    private var memory: UnsafeMutableRawBufferPointer?

    let capacity: Int
    private var isGivenAway = false

    init(capacity: Int) {
        self.capacity = capacity
    }

    /// The most that one read returns where the caller brings no memory.
    private static let maximumRead = 4 << 20

    /// - Throws: `.invalidArgument` for a count below 1.
    convenience init(forReading count: Int) throws(CacheError) {
        guard count > 0 else {
            throw CacheError(.invalidArgument, "cannot read \(count) bytes; ask for at least one")
        }
        self.init(capacity: min(count, Self.maximumRead))
    }

    deinit {
        free(memory?.baseAddress)
    }

    func withMemory<Result>(_ body: (UnsafeMutableRawBufferPointer) -> Result) -> Result {
        precondition(!isGivenAway, "the buffer was given away")
        let memory =
            memory
            ?? UnsafeMutableRawBufferPointer(start: malloc(max(1, capacity)), count: capacity)
        self.memory = memory
        return body(memory)
    }

    /// Transfers ownership of the first `count` bytes; the buffer cannot be used any more.
    func data(count: Int) -> Data {
        guard let start = memory?.baseAddress, count > 0 else { return Data() }
        (memory, isGivenAway) = (nil, true)
        return Data(bytesNoCopy: start, count: count, deallocator: .free)
    }
}
