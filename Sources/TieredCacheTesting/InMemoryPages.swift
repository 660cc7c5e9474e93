/// A file's content as pages; pages that were never written are holes.
struct Pages: Sendable {
    static let size = 4096

    private(set) var pages: [Int64: [UInt8]] = [:]
    private(set) var length: Int64 = 0

    init() {}

    init(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { write($0, at: 0) }
    }

    var allocatedBytes: Int64 { Int64(pages.count * Self.size) }

    var bytes: [UInt8] {
        var result = [UInt8](repeating: 0, count: Int(length))
        _ = result.withUnsafeMutableBytes { read(into: $0, at: 0) }
        return result
    }

    /// Replaces a page; `nil` is a hole.
    mutating func replace(_ page: Int64, with bytes: [UInt8]?) {
        pages[page] = bytes
    }

    /// The number of pages that a write would add.
    func newPages(_ count: Int, at offset: Int64) -> Int {
        guard count > 0 else { return 0 }
        let last = (offset + Int64(count) - 1) / Int64(Self.size)
        return (offset / Int64(Self.size)...last).count { pages[$0] == nil }
    }

    mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
        var done = 0
        while done < bytes.count {
            let position = offset + Int64(done)
            let start = Int(position % Int64(Self.size))
            let count = min(Self.size - start, bytes.count - done)
            let page = position / Int64(Self.size)
            pages[page, default: [UInt8](repeating: 0, count: Self.size)].withUnsafeMutableBytes {
                UnsafeMutableRawBufferPointer(rebasing: $0[start..<(start + count)])
                    .copyMemory(
                        from: UnsafeRawBufferPointer(rebasing: bytes[done..<(done + count)])
                    )
            }
            done += count
        }
        length = max(length, offset + Int64(bytes.count))
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
        guard offset >= 0, offset < length else { return 0 }
        let count = Int(min(Int64(buffer.count), length - offset))
        var done = 0
        while done < count {
            let position = offset + Int64(done)
            let start = Int(position % Int64(Self.size))
            let part = min(Self.size - start, count - done)
            let target = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<(done + part)])
            if let page = pages[position / Int64(Self.size)] {
                page.withUnsafeBytes {
                    target.copyMemory(
                        from: UnsafeRawBufferPointer(rebasing: $0[start..<(start + part)])
                    )
                }
            } else {
                target.initializeMemory(as: UInt8.self, repeating: 0)
            }
            done += part
        }
        return count
    }

    mutating func truncate(to newLength: Int64) {
        if newLength <= length {
            pages = pages.filter { $0.key * Int64(Self.size) < newLength }
            let start = Int(newLength % Int64(Self.size))
            if start > 0, var page = pages[newLength / Int64(Self.size)] {
                for index in start..<Self.size {
                    page[index] = 0
                }
                pages[newLength / Int64(Self.size)] = page
            }
        }
        length = newLength
    }

    mutating func punch(_ range: Range<Int64>) {
        let size = Int64(Self.size)
        for page in pages.keys {
            let extent = (page * size)..<((page + 1) * size)
            let hole = range.clamped(to: extent)
            if hole == extent {
                pages[page] = nil
            } else if !hole.isEmpty {
                let count = Int(hole.upperBound - hole.lowerBound)
                pages[page]?.replaceSubrange(
                    Int(
                        hole.lowerBound - extent.lowerBound
                    )..<Int(hole.upperBound - extent.lowerBound),
                    with: repeatElement(0, count: count)
                )
            }
        }
    }
}
