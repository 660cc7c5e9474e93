package import TieredCache

/// A source of memory pressure for tests.
package final class ScriptedPressureSource: MemoryPressureSource {
    private let stream: AsyncStream<MemoryPressureLevel>
    private let continuation: AsyncStream<MemoryPressureLevel>.Continuation

    /// Creates a source without observations.
    package init() {
        (stream, continuation) = AsyncStream.makeStream()
    }

    /// The observations; iterate over them once only.
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
