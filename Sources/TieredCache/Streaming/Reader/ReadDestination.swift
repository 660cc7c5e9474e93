import FoundationEssentials

/// The caller's memory that a read fills.
struct ReadDestination: @unchecked Sendable {
    // Unchecked: the caller lends the memory until the read has returned and looks at it only then;
    // one read at a time fills it.
    let buffer: UnsafeMutableRawBufferPointer

    var count: Int { buffer.count }

    /// Copies as many bytes as there is room for.
    func copy(_ bytes: Data) -> Int {
        let count = min(bytes.count, buffer.count)
        guard count > 0 else { return 0 }
        return bytes.prefix(count).withUnsafeBytes { source in
            buffer.copyMemory(from: source)
            return source.count
        }
    }
}
