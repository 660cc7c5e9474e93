import FoundationEssentials

/// Bytes at any offset, for a reader; one generation of one representation (invariant 3).
protocol BodyReader: AnyObject, Sendable {
    /// The length of the whole; nil while it is not known. Never waits.
    var length: Int64? { get }
    /// Whether bytes far from those read last can be had without those between.
    var isSeekable: Bool { get }
    /// Why bytes could not be stored; nil if they are.
    var storageError: CacheError? { get }
    /// The delivered bytes by where they came from.
    var counts: ByteCounts { get }

    /// Reads what is there; waits for the disk at most, never for the network.
    ///
    /// - Returns: nil if the first byte has to be waited for; 0 at the end.
    func readAtOnce(_ read: Read) -> Int?

    /// Reads at least one byte, waiting for it if need be; 0 at the end.
    ///
    /// Failures that may pass are tried again until the deadline; without one a read fails with its
    /// transfer.
    func read(_ read: Read, until deadline: MonotonicTime?) async throws(CacheError) -> Int
}

/// The bytes of an answer, for a reader.
enum ReaderBytes: Sendable {
    case anywhere(any BodyReader)
    /// They come once and in order.
    case inOrder(PassThroughReader)
}

/// One call to read.
struct Read: Sendable {
    /// The first byte wanted.
    let offset: Int64
    /// Where the bytes go.
    let destination: ReadDestination
    /// Where the bytes end that the consumer is certain to read; nil if it has not said.
    var expectedEnd: Int64?
    /// Stops the read from elsewhere.
    var control: ReadControl?
}

/// The memory that a read fills.
struct ReadDestination: @unchecked Sendable {
    // Unchecked: the caller leases the memory until the read has returned and looks at it only
    // then; one read at a time fills it.
    private let memory: UnsafeMutableRawBufferPointer
    private let own: ReadBuffer?

    let count: Int

    /// The caller's memory.
    init(buffer: UnsafeMutableRawBufferPointer) {
        (memory, own, count) = (buffer, nil, buffer.count)
    }

    /// Memory that is taken once there are bytes for it.
    init(_ own: ReadBuffer) {
        (memory, self.own, count) = (
            UnsafeMutableRawBufferPointer(start: nil, count: 0), own, own.capacity
        )
    }

    var buffer: UnsafeMutableRawBufferPointer { own?.withMemory { $0 } ?? memory }

    /// Copies as many bytes as there is room for.
    func copy(_ bytes: Data) -> Int {
        let count = min(bytes.count, count)
        guard count > 0 else { return 0 }
        return bytes.prefix(count).withUnsafeBytes { source in
            buffer.copyMemory(from: source)
            return source.count
        }
    }
}
