/// A request body that is read in pieces, as fast as the origin takes it.
///
/// It can be sent once: its request is never repeated after its first byte was read.
public struct UploadBody: Sendable {
    /// The number of bytes; nil if unknown, in which case they are sent chunked.
    public let length: Int64?

    private let pull: @Sendable () async throws -> BodyChunk?

    /// Creates a body.
    ///
    /// - Parameters:
    ///   - length: the number of bytes; nil if unknown.
    ///   - next: waits for the next bytes; returns nil at the end. An error ends the request. One
    ///     task calls it at a time.
    public init(length: Int64?, next: @escaping @Sendable () async throws -> BodyChunk?) {
        self.length = length
        pull = next
    }

    /// Waits for the next bytes; nil at the end.
    public func next() async throws -> BodyChunk? {
        try await pull()
    }
}
