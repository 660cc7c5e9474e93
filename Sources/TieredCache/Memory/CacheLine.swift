import CLinuxCalls

/// Asks the processor for cache lines early; any address may be passed.
///
/// Inlined in this module, one call elsewhere: only this module imports the C functions.
@usableFromInline
enum CacheLine {
    /// Starts loading a cache line that will be read.
    @usableFromInline
    @inline(__always)
    static func prefetch(_ address: UInt) { tc_prefetch(address) }

    /// Starts loading a cache line that will be written.
    @usableFromInline
    @inline(__always)
    static func prefetchForWriting(_ address: UInt) { tc_prefetch_for_writing(address) }
}
