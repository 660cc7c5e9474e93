/// An open file or directory: a number that only the file system which gave it can read.
///
/// A plain value, so that a hit allocates nothing for it. The code that opens a file closes it,
/// once.
package struct OpenFile: Hashable, Sendable {
    /// The number; a descriptor on POSIX.
    package let number: Int32

    /// Wraps a number of a file system's own.
    package init(number: Int32) {
        self.number = number
    }
}

/// How a file is opened.
package enum OpenMode: Hashable, Sendable {
    /// For reading; it must exist.
    case read
    /// For reading and writing; it must exist.
    case readWrite
    /// For reading and writing, mode 0600; it must not exist.
    case createNew
    /// For reading and writing, mode 0600; created where it does not exist.
    case openOrCreate
    /// A directory.
    case directory
}

/// The kind of file that has a name.
package enum FileKind: Hashable, Sendable {
    /// A regular file.
    case file
    /// A directory.
    case directory
    /// A symbolic link, a socket or a device; the cache makes none of these.
    case other
}

/// The status of a file.
package struct FileStatus: Hashable, Sendable {
    /// The kind.
    package var kind: FileKind
    /// The length in bytes, holes counted.
    package var size: Int64
    /// The bytes allocated: `st_blocks` × 512.
    package var allocatedBytes: Int64
    /// The last modification, in nanoseconds since 1970.
    package var modified: Int64
    /// The last change of any kind, in nanoseconds since 1970; unlike ``modified``, no program can
    /// set it.
    package var changed: Int64
    /// The inode number.
    package var identity: UInt64

    /// Creates a status.
    package init(
        kind: FileKind,
        size: Int64,
        allocatedBytes: Int64,
        modified: Int64,
        changed: Int64 = 0,
        identity: UInt64
    ) {
        self.kind = kind
        self.size = size
        self.allocatedBytes = allocatedBytes
        self.modified = modified
        self.changed = changed
        self.identity = identity
    }
}

extension FileStatus {
    /// The bytes charged for a file without holes: the file system may report its allocation only
    /// later.
    ///
    /// - Parameter most: the largest length of a file of the cache; a longer file is foreign, and
    ///   may have holes.
    /// - Returns: bytes.
    func denseBytes(atMost most: Int64) -> Int64 {
        max(allocatedBytes, Self.wholePages(min(size, most)))
    }

    /// The bytes that a file of this length is allocated on most volumes.
    static func wholePages(_ count: Int64) -> Int64 { (max(count, 0) + 4095) / 4096 * 4096 }
}

/// A name in a directory.
package struct DirectoryItem: Hashable, Sendable {
    /// The last path component.
    package var name: String
    /// The kind, links not followed.
    package var kind: FileKind

    /// Creates an item.
    package init(name: String, kind: FileKind) {
        self.name = name
        self.kind = kind
    }
}

/// The room on a volume, in bytes.
package struct VolumeStatus: Hashable, Sendable {
    /// The bytes that an unprivileged process may still write.
    package var available: Int64
    /// The volume's size.
    package var total: Int64

    /// Creates a status.
    package init(available: Int64, total: Int64) {
        self.available = available
        self.total = total
    }
}

/// The result of a call that must not block.
@_spi(Benchmarks) public enum NonBlocking<Value> {
    /// The call succeeded.
    case ready(Value)
    /// Nothing was done, because the call would have waited for the disk. Call the blocking form on
    /// an I/O thread.
    case wouldBlock
}

@_spi(Benchmarks)
extension NonBlocking: Sendable where Value: Sendable {}
@_spi(Benchmarks)
extension NonBlocking: Equatable where Value: Equatable {}
