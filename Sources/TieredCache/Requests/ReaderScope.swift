import HTTPCaching

/// The bytes that a reader may reach; its request is for the first of them.
struct ReaderScope: Hashable, Sendable {
    /// Nil for all of them.
    let range: ByteRangeSpec?
    /// The options of the reader.
    let options: ReaderOptions
}

extension CacheRequest {
    /// The number of bytes that count as delivered from memory when a hit is found.
    ///
    /// A reader of an entry in memory needs the whole: if the request was for less, a second lookup
    /// follows, which counts.
    func countedInMemory(_ wanted: WantedRange, completeLength: Int64?) -> Int {
        guard let scope else { return wanted.count }
        do throws(CacheError) {
            let whole = try self.wanted(in: scope, completeLength: completeLength)
            return whole == wanted ? wanted.count : 0
        } catch {
            return 0  // A range that does not exist is not delivered.
        }
    }

    /// All bytes that a reader may reach.
    func wanted(
        in scope: ReaderScope,
        completeLength: Int64?
    ) throws(CacheError) -> WantedRange? {
        var all = self
        all.range = scope.range
        return try WantedRange.resolve(for: all, completeLength: completeLength)
    }
}
