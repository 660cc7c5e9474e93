package import FoundationEssentials

extension ResponseBody {
    /// Decodes a body as it is read.
    ///
    /// To be read once, by one task.
    package struct DecodedBytes {
        private var source: AsyncIterator
        private let inflater: Inflater?

        fileprivate init(_ source: AsyncIterator, inflater: Inflater?) {
            self.source = source
            self.inflater = inflater
        }

        /// The next bytes, never empty; nil at the end.
        ///
        /// - Throws: the errors of reading; `.originFailed` for bytes that are not coded as the
        ///   origin says.
        package mutating func next() async throws(CacheError) -> Data? {
            guard let inflater else { return try await source.next() }
            while true {
                do throws(Inflater.InvalidData) {
                    if let piece = try inflater.next() { return Data(piece) }
                } catch {
                    throw Self.undecodable
                }
                guard let chunk = try await source.next() else {
                    guard inflater.isComplete else { throw Self.undecodable }
                    return nil
                }
                inflater.supply(BodyChunk(chunk))
            }
        }

        private static let undecodable = CacheError(
            .originFailed,
            "the origin sent a coded body that cannot be decoded"
        )
    }

    /// The bytes as they were before they were coded.
    ///
    /// - Parameter coding: how they are coded; one that is not supported leaves them as they are.
    /// - Returns: the bytes.
    package func decoded(from coding: ContentCoding) -> DecodedBytes {
        let isSupported = coding == .gzip || coding == .deflate
        return DecodedBytes(makeAsyncIterator(), inflater: isSupported ? Inflater(coding) : nil)
    }
}
