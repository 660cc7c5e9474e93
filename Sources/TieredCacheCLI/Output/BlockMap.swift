/// Which parts of a body are stored, as one short line.
enum BlockMap {
    /// A cell for each part: `#` all of it is held, `+` some, `.` none.
    ///
    /// - Parameters:
    ///   - stored: what is stored, ascending.
    ///   - length: the length of the whole body; where it is unknown, the map ends with `?` behind
    ///     what is stored.
    ///   - width: the most cells.
    /// - Returns: the line, in brackets.
    static func text(stored: [Range<Int64>], length: Int64?, width: Int = 50) -> String {
        let end = length ?? stored.last?.upperBound ?? 0
        let tail = length == nil ? "?" : ""
        guard end > 0, width > 0 else { return "[\(tail)]" }
        let cells = Int(min(Int64(width), end))
        let line = (0..<cells).map { cell in
            symbol(for: bound(cell, cells, end)..<bound(cell + 1, cells, end), stored)
        }
        return "[\(String(line))\(tail)]"
    }

    /// Where a cell starts; in two steps, so that no length overflows.
    private static func bound(_ cell: Int, _ cells: Int, _ end: Int64) -> Int64 {
        let (whole, rest) = end.quotientAndRemainder(dividingBy: Int64(cells))
        return whole * Int64(cell) + rest * Int64(cell) / Int64(cells)
    }

    private static func symbol(for part: Range<Int64>, _ stored: [Range<Int64>]) -> Character {
        let bytes = stored.reduce(Int64(0)) { sum, range in
            sum + Int64(range.clamped(to: part).count)
        }
        if bytes == 0 { return "." }
        return bytes == part.upperBound - part.lowerBound ? "#" : "+"
    }
}
