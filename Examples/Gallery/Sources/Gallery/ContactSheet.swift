import CPictures

/// Pictures in rows, as a PNG.
struct ContactSheet {
    struct CannotWrite: Error {}

    private let columns: Int
    private let cell: (width: Int, height: Int)
    private let height: Int
    private var pixels: [UInt8]

    /// An empty sheet, white.
    init(cells: Int, columns: Int, cell: (width: Int, height: Int)) {
        self.columns = columns
        self.cell = cell
        height = (cells + columns - 1) / columns * cell.height
        pixels = [UInt8](repeating: 255, count: columns * cell.width * height * 3)
    }

    /// Draws a picture into a cell; what is beyond is cut off on both sides.
    mutating func draw(_ poster: Poster, at index: Int) {
        let (left, top) = (index % columns * cell.width, index / columns * cell.height)
        let beyond = (
            max(0, poster.width - cell.width) / 2, max(0, poster.height - cell.height) / 2
        )
        let count = min(poster.width, cell.width) * 3
        for row in 0..<min(poster.height, cell.height) {
            let source = poster.row(row + beyond.1).dropFirst(beyond.0 * 3).prefix(count)
            let place = ((top + row) * columns * cell.width + left) * 3
            pixels.replaceSubrange(place..<place + count, with: source)
        }
    }

    func write(to path: String) throws {
        var pixels = pixels
        let result = pixels.withUnsafeMutableBufferPointer { buffer in
            var bitmap = Bitmap(
                width: Int32(columns * cell.width),
                height: Int32(height),
                pixels: buffer.baseAddress
            )
            return bitmap_write(&bitmap, path)
        }
        guard result == 0 else { throw CannotWrite() }
    }
}
