/// How large a picture is shown, in pixels.
public struct ImageSize: Hashable, Sendable, CustomStringConvertible {
    /// What becomes of a picture with other proportions.
    public enum Mode: String, Hashable, Sendable {
        /// All of it is within the size.
        case fit
        /// It covers the size, and a view cuts off what is beyond.
        case fill
    }

    /// The width in pixels, at least one.
    public let width: Int
    /// The height in pixels, at least one.
    public let height: Int
    /// What becomes of a picture with other proportions.
    public let mode: Mode

    /// Creates a size; numbers below one become one.
    public init(width: Int, height: Int, mode: Mode = .fit) {
        self.width = max(1, width)
        self.height = max(1, height)
        self.mode = mode
    }

    /// Such as `320x180 fit`.
    public var description: String { "\(width)x\(height) \(mode.rawValue)" }

    /// The size that a picture gets, its proportions kept; never more than its own.
    ///
    /// - Parameters:
    ///   - width: the picture's own width in pixels, above zero.
    ///   - height: its own height in pixels, above zero.
    /// - Returns: the width and height that it is scaled to, at least one each.
    public func scaled(width: Int, height: Int) -> (width: Int, height: Int) {
        let across = Double(self.width) / Double(width)
        let down = Double(self.height) / Double(height)
        let factor = mode == .fit ? min(across, down) : max(across, down)
        guard factor < 1 else { return (width, height) }
        return (
            max(1, Int((Double(width) * factor).rounded())),
            max(1, Int((Double(height) * factor).rounded()))
        )
    }
}
