import HTTPCaching
import HTTPTypes

// A 206 that cannot be combined with anything, kept for those who ask for bytes inside it.
extension DownloadOperation {
    /// What is kept of a part while it passes.
    struct PartWriter: Sendable {
        let writer: BodyWriter
        /// Where the part begins, counted as the transfer counts.
        let start: Int64
    }

    /// An entry for a part by itself; nil where it must not or cannot be kept.
    func makePart(_ head: DownloadHead, _ start: GenerationStart) -> PartWriter? {
        guard head.response.status == .partialContent, request.method == .get,
            start.coding == .identity, storage.hasDirectory,
            let length = partLength(head.response, start),
            let stored = storedPart(head, length: length),
            StandalonePart.isStorable(stored.facts, request: request.facts, rules: origins.rules)
        else { return nil }
        do throws(CacheError) {
            let key = storage.partKey(for: stored, of: request.key)
            let entry = try storage.disk.store().makeEntry(
                for: key,
                metadata: stored.encoded(),
                completeLength: length,
                class: request.entryClass.subtracting(.pinned),
                DiskSuccession(cause: storage.removal(of: key))
            )
            return PartWriter(writer: try entry.beginWriting(at: 0), start: start.offset)
        } catch {
            recorder.didFailToStore(request.key, request.target, error)
            return nil
        }
    }

    /// How many bytes the body has: by its own framing, else by what it says that it is.
    private func partLength(_ response: HTTPResponse, _ start: GenerationStart) -> Int64? {
        if !start.isVerbatim { return start.end.map { $0 - start.offset } }
        if let length = start.completeLength { return length }
        do throws(FieldSyntaxError) {
            let range = try ContentRange.parse(in: response.headerFields)?.range
            return range.map { Int64($0.count) }
        } catch {
            // Nobody knows what it is a part of.
            return nil
        }
    }

    private func storedPart(_ head: DownloadHead, length: Int64) -> StoredResponse? {
        let received = head.response.headerFields
        var fields = StoredFields.of(received, rules: origins.rules)
        fields[.contentLength] = String(length)
        var varying = received
        if StandalonePart(fields: received, length: length).range == nil {
            // Only who asks for the same again is answered with the same.
            guard request.fields.contains(.range) else { return nil }
            varying.append(HTTPField(name: .vary, value: "Range"))
        }
        return StoredResponse(
            status: 206,
            fields: fields,
            requestTime: head.requestTime,
            responseTime: head.responseTime,
            origin: request.storedOrigin(finalTarget: head.finalTarget),
            selectingFields: selectingFields(varying),
            flags: flags(of: head.response)
        )
    }
}

// The same while the bytes pass.
extension StoringSink {
    /// Keeps bytes that go past the entry of the whole; a disk that refuses ends the keeping.
    func keepPart(_ chunk: BodyChunk, at offset: Int64) {
        guard let part = state.withLock({ $0.part }) else { return }
        do throws(CacheError) {
            guard part.writer.position == offset - part.start else { return dropPart() }
            try chunk.withUnsafeBytes { (bytes) throws(CacheError) in
                try part.writer.write(bytes)
            }
            state.withLock { $0.stored += Int64(chunk.count) }
        } catch {
            dropPart()
            if error.code != .invalidArgument {
                recorder.didFailToStore(
                    operation.request.key,
                    operation.request.target,
                    error
                )
            }
        }
    }

    /// Ends the keeping; what has come so far stays.
    func endPart() {
        let ended = state.withLock { $0.part.take()?.writer }
        ended?.end()
    }

    /// Ends the keeping because what comes is not what was announced.
    func dropPart() {
        let key = state.withLock { $0.part?.writer.entry.key }
        endPart()
        if let key { operation.storage.forget(key, because: .replaced) }
    }
}
