/// Draws the stored parts of a body as one short line.
enum BlockMap {
    /// A cell for each part: `#` if all of it is stored, `+` for some, `.` for none.
    ///
    /// - Parameters:
    ///   - stored: the stored ranges, ascending.
    ///   - length: the length of the whole body; if it is unknown, the map covers the stored part
    ///     and ends with `?`.
    ///   - width: the maximum number of cells.
    /// - Returns: the line, in brackets.
    static func text(stored: [Range<Int64>], length: Int64?, width: Int = 50) -> String {
        let end = length ?? stored.last?.upperBound ?? 0
        let tail = length == nil ? "?" : ""
        guard end > 0, width > 0 else { return "[\(tail)]" }
        let cells = Int(min(Int64(width), end))
        let line = (0..<cells).map { cell in
            symbol(
                for: bound(
                    of: cell,
                    cells: cells,
                    end: end
                )..<bound(of: cell + 1, cells: cells, end: end),
                stored
            )
        }
        return "[\(String(line))\(tail)]"
    }

    /// The start of a cell; computed in two steps to avoid an overflow.
    private static func bound(of cell: Int, cells: Int, end: Int64) -> Int64 {
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
