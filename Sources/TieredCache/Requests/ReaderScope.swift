import HTTPCaching

/// The bytes that a reader may come to, of which its request asks for the first.
struct ReaderScope: Hashable, Sendable {
    /// Nil for all of them.
    let range: ByteRangeSpec?
    /// How they are read.
    let options: ReaderOptions
}

extension CacheRequest {
    /// How many bytes count as delivered from memory when a hit is found.
    ///
    /// A reader takes what is in memory as a whole, by a second look where the first was for less.
    func countedInMemory(_ wanted: WantedRange, completeLength: Int64?) -> Int {
        guard let scope else { return wanted.count }
        do throws(CacheError) {
            let whole = try self.wanted(in: scope, completeLength: completeLength)
            return whole == wanted ? wanted.count : 0
        } catch {
            return 0  // What does not exist is not delivered.
        }
    }

    /// All that a reader may come to.
    func wanted(
        in scope: ReaderScope,
        completeLength: Int64?
    ) throws(CacheError) -> WantedRange? {
        var all = self
        all.range = scope.range
        return try WantedRange.resolve(all, completeLength: completeLength)
    }
}
