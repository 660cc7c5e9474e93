public import TieredCache

/// Memory pressure that a test presses.
public final class ScriptedPressureSource: MemoryPressureSource {
    private let stream: AsyncStream<MemoryPressureLevel>
    private let continuation: AsyncStream<MemoryPressureLevel>.Continuation

    /// Creates a source that has nothing to say yet.
    public init() {
        (stream, continuation) = AsyncStream.makeStream()
    }

    /// What is pressed; to be followed once.
    public func levels() -> AsyncStream<MemoryPressureLevel> {
        stream
    }

    /// Sends observations in order.
    public func press(_ levels: MemoryPressureLevel...) {
        for level in levels { continuation.yield(level) }
    }

    /// Ends the stream.
    public func finish() {
        continuation.finish()
    }
}
