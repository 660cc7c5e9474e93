/// Finds the `moov` box of an ISO base media file by stepping over its top-level boxes
/// (ISO/IEC 14496-12 §4.2).
///
/// A player can start only with `moov`, which follows gigabytes of `mdat` in files that were not
/// written for streaming; so a prefetch takes the head and this box. Performs no I/O: each step
/// names the next box header to read.
struct MovieBoxLocator {
    enum Step: Equatable {
        /// Read ``MovieBoxLocator/headerSize`` bytes (fewer at the end of the file) at the offset.
        case readHeader(at: Int64)
        /// `moov` occupies these bytes.
        case found(Range<Int64>)
        /// Not an ISO base media file, damaged, or without `moov`.
        case absent
    }

    /// Enough for a box header with a 64-bit size.
    static let headerSize = 16
    /// More top-level boxes before `moov` count as damage.
    private static let maximumBoxes = 1000

    private let completeLength: Int64
    private var offset: Int64 = 0
    private var boxes = 0

    init(completeLength: Int64) {
        self.completeLength = completeLength
    }

    /// The first step.
    func start() -> Step {
        completeLength < 8 ? .absent : .readHeader(at: 0)
    }

    /// Takes the bytes at the position of the last step.
    mutating func didRead(_ header: some RandomAccessCollection<UInt8>) -> Step {
        boxes += 1
        guard boxes <= Self.maximumBoxes, let box = Self.parse(header) else { return .absent }
        guard boxes > 1 || Self.firstTypes.contains(box.type) else { return .absent }
        let size = box.size ?? completeLength - offset
        let (end, overflow) = offset.addingReportingOverflow(size)
        guard !overflow, size >= 8 else { return .absent }
        if box.type == "moov" {
            return .found(offset..<min(end, completeLength))
        }
        offset = end
        return offset <= completeLength - 8 ? .readHeader(at: offset) : .absent
    }

    /// The types of a file's first box; any other is not ISO base media.
    private static let firstTypes: Set<String> = [
        "ftyp", "styp", "moov", "mdat", "free", "skip", "wide", "pnot",
    ]

    /// Parses the size (nil: to the end of the file) and type of a box.
    private static func parse(
        _ header: some RandomAccessCollection<UInt8>
    ) -> (size: Int64?, type: String)? {
        guard header.count >= 8 else { return nil }
        let size = header.prefix(4).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        let type = String(decoding: header.dropFirst(4).prefix(4), as: UTF8.self)
        switch size {
        case 0:
            return (nil, type)
        case 1:
            guard header.count >= 16 else { return nil }
            let large = header.dropFirst(8).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            guard let size = Int64(exactly: large), size >= 16 else { return nil }
            return (size, type)
        default:
            return (size, type)
        }
    }
}
