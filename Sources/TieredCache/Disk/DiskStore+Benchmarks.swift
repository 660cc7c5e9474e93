// What the package Benchmarks calls, without the types that only this package sees.
@_spi(Benchmarks)
extension DiskStore {
    /// Opens a directory, or makes it, on the machine's file system.
    public convenience init(_ options: DiskStoreOptions) throws(CacheError) {
        try self.init(options, fileSystem: POSIXFileSystem(mayBlockAnyThread: true))
    }

    /// Stores a complete body, neither pinned nor prefetched.
    @discardableResult
    public func store(
        _ bytes: UnsafeRawBufferPointer,
        for key: CacheKey,
        metadata: [UInt8]
    ) throws(CacheError) -> DiskEntry {
        try store(bytes, for: key, metadata: metadata, class: [])
    }
}
