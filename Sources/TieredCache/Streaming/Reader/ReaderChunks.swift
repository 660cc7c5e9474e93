public import FoundationEssentials

/// The bytes of a ``CacheReader`` from an offset, as an asynchronous sequence of chunks.
///
/// No byte after the end of the sequence is fetched. The cursor of the reader does not move. A
/// chunk is at most 256 KiB and never empty.
public struct ReaderChunks: AsyncSequence, Sendable {
    /// A chunk of bytes.
    public typealias Element = Data
    /// The error of a read.
    public typealias Failure = CacheError

    let reader: CacheReader
    let start: Int64
    let end: Int64?

    /// Starts at the first byte.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(reader: reader, position: start, end: end)
    }

    /// Reads ``ReaderChunks``.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let reader: CacheReader
        var position: Int64
        let end: Int64?

        /// The next chunk, or nil at the end.
        ///
        /// - Returns: the chunk.
        /// - Throws: the errors of ``CacheReader/unsafeRead(at:into:deadline:)``; the next call then
        ///   retries the same chunk.
        public mutating func next() async throws(CacheError) -> Data? {
            let chunk = try await reader.chunk(at: position, to: end)
            position += Int64(chunk.count)
            return chunk.isEmpty ? nil : chunk
        }

        /// The same as ``next()``; the isolation of the actor is ignored.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(CacheError) -> Data? {
            let chunk = try await reader.chunk(at: position, to: end)
            position += Int64(chunk.count)
            return chunk.isEmpty ? nil : chunk
        }
    }
}

extension CacheReader {
    /// The bytes from `start`, as a sequence of chunks.
    ///
    /// - Parameters:
    ///   - start: the offset of the first byte.
    ///   - end: the end of the bytes, if known: all bytes before it are then certain to be read,
    ///     and are requested in large pieces; nil for a consumer that may stop at any time.
    /// - Returns: the sequence; each iterator begins at `start`.
    public func chunks(from start: Int64 = 0, to end: Int64? = nil) -> ReaderChunks {
        ReaderChunks(reader: self, start: start, end: end)
    }

    private static let chunkSize: Int64 = 256 << 10

    fileprivate func chunk(at offset: Int64, to end: Int64?) async throws(CacheError) -> Data {
        let left = Swift.max(0, end ?? .max) - Swift.max(0, offset)
        let count = Swift.min(Self.chunkSize, left)
        guard count > 0 else { return Data() }
        let buffer = ReadBuffer(capacity: Int(count))
        let read = Read(offset: offset, destination: ReadDestination(buffer), expectedEnd: end)
        let got = try await self.read(read, deadline: nil)
        return buffer.data(count: got)
    }
}
