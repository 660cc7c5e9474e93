package import TieredCache

/// Memory pressure that a test presses.
package final class ScriptedPressureSource: MemoryPressureSource {
    private let stream: AsyncStream<MemoryPressureLevel>
    private let continuation: AsyncStream<MemoryPressureLevel>.Continuation

    /// Creates a source that has nothing to say yet.
    package init() {
        (stream, continuation) = AsyncStream.makeStream()
    }

    /// What is pressed; to be followed once.
    package func levels() -> AsyncStream<MemoryPressureLevel> {
        stream
    }

    /// Sends observations in order.
    package func press(_ levels: MemoryPressureLevel...) {
        for level in levels { continuation.yield(level) }
    }

    /// Ends the stream.
    package func finish() {
        continuation.finish()
    }
}
