import HTTPCaching
import HTTPTypes

// Storing a 206 that cannot be combined, for requests for bytes inside it.
extension DownloadOperation {
    /// Stores a standalone part while it is delivered.
    struct PartWriter: Sendable {
        let writer: BodyWriter
        /// The offset of the part's first byte in the transfer.
        let start: Int64
    }

    /// Creates the entry of a standalone part; nil if it must not or cannot be stored, or if the
    /// transfer is abandoned.
    func makePart(
        _ head: DownloadHead,
        start: GenerationStart,
        context: TransferContext
    ) -> PartWriter? {
        guard head.response.status == .partialContent, request.method == .get,
            start.coding == .identity, storage.hasDirectory, !request.excludes(head.finalTarget),
            let length = partLength(of: head.response, start: start),
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
                succession: DiskSuccession(
                    cause: storage.removal(of: key),
                    isWanted: isEntryWanted(in: context)
                )
            )
            return PartWriter(writer: try entry.beginWriting(at: 0), start: start.offset)
        } catch  where error.code == .cancelled {
            return nil
        } catch {
            recorder.didFailToStore(request.key, target: request.target, error: error)
            return nil
        }
    }

    /// The length of the body in bytes: by its framing, otherwise by its `Content-Range`.
    private func partLength(of response: HTTPResponse, start: GenerationStart) -> Int64? {
        if !start.isVerbatim { return start.end.map { $0 - start.offset } }
        if let length = start.completeLength { return length }
        do throws(FieldSyntaxError) {
            let range = try ContentRange.parse(in: response.headerFields)?.range
            return range.map { Int64($0.count) }
        } catch {
            // Without a valid range the position of the bytes is unknown.
            return nil
        }
    }

    private func storedPart(_ head: DownloadHead, length: Int64) -> StoredResponse? {
        let received = head.response.headerFields
        var fields = StoredFields.of(received, rules: origins.rules)
        fields[.contentLength] = String(length)
        var varying = received
        if StandalonePart(fields: received, length: length).range == nil {
            // Only an identical range request may be answered with it.
            guard request.fields.contains(.range) else { return nil }
            varying.append(HTTPField(name: .vary, value: "Range"))
        }
        return StoredResponse(
            status: 206,
            fields: fields,
            requestTime: head.requestTime,
            responseTime: head.responseTime,
            origin: request.storedOrigin(finalTarget: head.finalTarget),
            selectingFields: selectingFields(of: varying),
            flags: flags(of: head.response, hasCookies: head.hasCookies)
        )
    }
}

// Storing it while the bytes pass.
extension StoringSink {
    /// Stores bytes that bypass the entry of the whole; ends the part if the disk refuses them.
    func keepPart(_ chunk: BodyChunk, at offset: Int64) {
        guard let part = state.part else { return }
        do throws(CacheError) {
            guard part.writer.position == offset - part.start else { return dropPart() }
            try chunk.withUnsafeBytes { (bytes) throws(CacheError) in
                try part.writer.write(bytes)
            }
            state.stored += Int64(chunk.count)
        } catch {
            dropPart()
            if error.code != .invalidArgument {
                recorder.didFailToStore(
                    operation.request.key,
                    target: operation.request.target,
                    error: error
                )
            }
        }
    }

    /// Ends the part; the bytes stored so far stay.
    func endPart() {
        let ended = state.part.take()?.writer
        ended?.end()
    }

    /// Discards the part, because the bytes are not those that its head announced.
    func dropPart() {
        let key = state.part?.writer.entry.key
        endPart()
        if let key { operation.storage.forget(key, because: .replaced) }
    }
}
