/// A request body that is pulled piece by piece, as fast as the origin takes it.
///
/// It can be sent once: a request that has one is never repeated after its first byte was pulled.
public struct UploadBody: Sendable {
    /// How many bytes there are; nil where that is not known, so that they go out chunked.
    public let length: Int64?

    private let pull: @Sendable () async throws -> BodyChunk?

    /// Creates a body.
    ///
    /// - Parameters:
    ///   - length: how many bytes there are, or nil.
    ///   - next: waits for the next bytes; nil at the end. What it throws ends the request. It is
    ///     called by one task at a time.
    public init(length: Int64?, next: @escaping @Sendable () async throws -> BodyChunk?) {
        self.length = length
        pull = next
    }

    /// Waits for the next bytes; nil at the end.
    public func next() async throws -> BodyChunk? {
        try await pull()
    }
}
