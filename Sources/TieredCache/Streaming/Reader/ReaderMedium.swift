/// Where the bytes of a reader come from; one generation of one representation (invariant 3).
protocol ReaderMedium: AnyObject, Sendable {
    /// Stops reads from elsewhere.
    var control: ReadControl { get }
    /// The length of the whole; nil while it is not known. Never waits.
    var length: Int64? { get }
    /// Whether bytes far from those read last can be had without those between.
    var isSeekable: Bool { get }
    /// Why bytes could not be stored; nil if they are.
    var storageTrouble: CacheError? { get }
    /// The delivered bytes by where they came from.
    var counts: ByteCounts { get }

    /// Reads what is there; waits for the disk at most, never for the network.
    ///
    /// - Returns: nil if the first byte has to be waited for; 0 at the end.
    func readAtOnce(_ read: Read) -> Int?

    /// Reads at least one byte, waiting for it if need be; 0 at the end.
    func read(_ read: Read, until deadline: MonotonicTime) async throws(CacheError) -> Int
}

/// One call to read.
struct Read: Sendable {
    /// The first byte wanted.
    let offset: Int64
    /// Where the bytes go.
    let destination: ReadDestination
    /// Where the bytes end that the consumer is certain to read; nil if it has not said.
    var certainEnd: Int64?
}
