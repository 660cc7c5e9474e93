public import FoundationEssentials

/// Makes pictures of bytes, by a library of the application's choice.
public protocol ImageDecoding: Sendable {
    /// A decoded picture, such as a bitmap.
    associatedtype Picture: Sendable

    /// Decodes a picture. Called on a thread of the pipeline, and may take its time there.
    ///
    /// - Parameters:
    ///   - bytes: the whole body; hostile, like everything from the network.
    ///   - size: how large the picture is to be, so that a decoder may leave out what would not be
    ///     seen; nil for its own size.
    /// - Returns: the picture; ``ImageSize/scaled(width:height:)`` tells its size.
    /// - Throws: where the bytes are no picture. The same error goes to all that wait for it.
    func picture(of bytes: Data, size: ImageSize?) throws -> Picture

    /// How much memory a picture takes, in bytes.
    func cost(of picture: Picture) -> Int
}
