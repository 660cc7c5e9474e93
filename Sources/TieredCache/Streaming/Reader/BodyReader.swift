import FoundationEssentials

/// Bytes at any offset, for a reader; one generation of one representation (invariant 3).
protocol BodyReader: AnyObject, Sendable {
    /// The length of the whole representation; nil while unknown. Never waits.
    var length: Int64? { get }
    /// Whether distant bytes can be read without those in between.
    var isSeekable: Bool { get }
    /// Why bytes could not be stored; nil if all were.
    var storageError: CacheError? { get }
    /// The numbers of delivered bytes by source.
    var counts: ByteCounts { get }
    /// The bytes that can be read without the origin now.
    var storedRanges: [Range<Int64>] { get }

    /// Reads available bytes; may wait for the disk, never for the network.
    ///
    /// - Returns: nil if the first byte is not available; 0 at the end.
    func readWithoutWaiting(_ read: Read) -> Int?

    /// Reads at least one byte, and waits for it if necessary; returns 0 at the end.
    ///
    /// Retries after transient failures until the deadline; without a deadline a read fails with
    /// its transfer.
    func read(_ read: Read, until deadline: MonotonicTime?) async throws(CacheError) -> Int
}

/// The bytes of a response, for a reader.
enum ReaderBytes: Sendable {
    case seekable(any BodyReader)
    /// They can be read once, in order.
    case sequential(WindowReader)
}

/// One call to read.
struct Read: Sendable {
    /// The offset of the first byte.
    let offset: Int64
    /// The destination of the bytes.
    let destination: ReadDestination
    /// The end of the bytes that the consumer is certain to read; nil if unknown.
    var expectedEnd: Int64?
    /// Stops the read from another thread.
    var control: ReadControl?
}

/// The memory that a read writes to.
struct ReadDestination: @unchecked Sendable {
    // Unchecked: the caller provides the memory until the read has returned and accesses it only
    // then; one read at a time writes to it.
    private let memory: UnsafeMutableRawBufferPointer
    private let own: ReadBuffer?

    let count: Int

    /// Uses the caller's memory.
    init(buffer: UnsafeMutableRawBufferPointer) {
        (memory, own, count) = (buffer, nil, buffer.count)
    }

    /// Uses a buffer that allocates its memory once there are bytes.
    init(_ own: ReadBuffer) {
        (memory, self.own, count) = (
            UnsafeMutableRawBufferPointer(start: nil, count: 0), own, own.capacity
        )
    }

    var buffer: UnsafeMutableRawBufferPointer { own?.withMemory { $0 } ?? memory }

    /// The first bytes, after they were written.
    func prefix(_ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: buffer[..<count])
    }

    /// Copies as many bytes as fit.
    func copy(_ bytes: Data) -> Int {
        let count = min(bytes.count, count)
        guard count > 0 else { return 0 }
        return bytes.prefix(count).withUnsafeBytes { source in
            buffer.copyMemory(from: source)
            return source.count
        }
    }
}
