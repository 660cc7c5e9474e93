import TieredCache

// What other processes have the owner of the directory bring.
extension AgentMethods {
    /// `tieredcache.fill`: fetches what is missing of a range of a body, and answers when the blocks
    /// are stored or cannot be.
    func fill(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let text = try given.required(0, as: \.string)
        let offset = try given.optional(1, as: \.integer) ?? 0
        let length = try given.optional(2, as: \.integer)
        guard offset >= 0, length.map({ $0 > 0 }) ?? true else {
            throw RPCError("A range has an offset from 0 on, and a length above 0.")
        }
        var options = DownloadOptions()
        try options.take(try given.optional(3, as: \.object) ?? [:])
        do throws(CacheError) {
            var request = try CacheRequest(text)
            for field in options.fields { request.fields.append(field) }
            return try await stored(of: request, from: offset, length: length)
        } catch {
            throw RPCError(error.message)
        }
    }

    /// Reads a range, which stores it, and tells what of it is stored then.
    private func stored(
        of request: CacheRequest,
        from offset: Int64,
        length: Int64?
    ) async throws(CacheError) -> JSONValue {
        let end = length.flatMap { offset > .max - $0 ? nil : offset + $0 } ?? .max
        var options = ReaderOptions()
        options.maximumReadAhead = 0
        let reader = try await agent.cache.reader(
            for: request,
            at: offset,
            expectedEnd: length == nil ? nil : end,
            options: options
        )
        defer { reader.cancel() }
        let wanted = offset..<max(offset, end)
        while reader.position < end {
            // What is not stored, such as a response that forbids it, is not fetched in vain.
            if reader.position - offset >= 1 << 20, stored(by: reader, in: wanted).isEmpty { break }
            let count = Int(min(1 << 20, end - reader.position))
            guard try await !reader.read(count: count).isEmpty else { break }
        }
        let stored = stored(by: reader, in: wanted).map { range in
            JSONValue.array([.integer(range.lowerBound), .integer(range.upperBound)])
        }
        let size = reader.size.map { JSONValue.integer($0) }
        return ["length": size ?? .null, "stored": .array(stored)]
    }

    private func stored(by reader: CacheReader, in wanted: Range<Int64>) -> [Range<Int64>] {
        reader.storedRanges.map { $0.clamped(to: wanted) }.filter { !$0.isEmpty }
    }
}
