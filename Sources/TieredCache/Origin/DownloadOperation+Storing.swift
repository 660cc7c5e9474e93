import HTTPCaching
import HTTPTypes

// The entry of a head: a new one, one that another transfer has made, or none.
extension DownloadOperation {
    /// The head to store: that of the whole representation, even if a part brought it.
    func storedResponse(_ head: DownloadHead, start: GenerationStart) -> StoredResponse {
        let response = head.response
        let isPart = response.status == .partialContent && !start.isVerbatim
        var fields =
            isPart
            ? StoredFields.ofRepresentation(
                partial: response.headerFields,
                completeLength: start.completeLength,
                rules: origins.rules
            ) : StoredFields.of(response.headerFields, rules: origins.rules)
        if start.coding != .identity {
            // The bytes are decoded before they are stored.
            fields[.contentEncoding] = nil
            // RFC 9530 §3: `Repr-Digest` is of the coded bytes.
            for name in ContentDigest.promisingFields { fields[name] = nil }
            fields[.contentLength] = start.completeLength.map(String.init)
        }
        var stored = storedResponse(
            status: isPart ? 200 : response.status.code,
            fields: fields,
            of: response,
            finalTarget: head.finalTarget,
            hasCookies: head.hasCookies,
            times: (head.requestTime, head.responseTime)
        )
        // Bytes must not be combined by a tag that also identifies other bytes (rows 23 and 26).
        if start.coding != .identity || response.status.code == 203 {
            stored.flags.insert(.withoutValidator)
        }
        return stored
    }

    func storedResponse(
        status: Int,
        fields: HTTPFields,
        of response: HTTPResponse,
        finalTarget: TargetURI,
        hasCookies: Bool,
        times: (request: WallTime, response: WallTime)
    ) -> StoredResponse {
        StoredResponse(
            status: status,
            fields: fields,
            requestTime: times.request,
            responseTime: times.response,
            origin: request.storedOrigin(finalTarget: finalTarget),
            selectingFields: selectingFields(of: response.headerFields),
            flags: flags(of: response, hasCookies: hasCookies)
        )
    }

    /// The flags that record how the request affects the stored head.
    func flags(of response: HTTPResponse, hasCookies: Bool) -> StoredResponse.Flags {
        var flags: StoredResponse.Flags = request.relay == nil ? [] : .relayed
        if hasCookies || response.headerFields.contains(.setCookie) { flags.insert(.personal) }
        if request.fields.contains(.origin) { flags.insert(.crossOrigin) }
        return flags
    }

    /// The fields that a later request must share with this one.
    ///
    /// A private cache in front of an origin may serve several clients on one machine. A response
    /// to a request with credentials answers only requests with the same credentials, unless the
    /// origin allows any (RFC 9111 §3.5); a `private` response answers only requests with the same
    /// cookies and credentials, or likewise without any.
    func selectingFields(of response: HTTPFields) -> [SelectingField] {
        var varying = response
        if request.relay != nil, !origins.rules.isShared {
            let control = ResponseCacheControl(in: response)
            let isAuthorized = request.fields.contains(.authorization)
            if control.has(.isPrivate) {
                varying.append(HTTPField(name: .vary, value: "Authorization, Cookie"))
            } else if isAuthorized, !Storability.allowsAuthorized(control) {
                varying.append(HTTPField(name: .vary, value: "Authorization"))
            }
        }
        return VaryMatch.selectingFields(response: varying, request: request.fields)
    }

    /// The head for the waiting client, including fields that the `stored` one must not have; nil if
    /// there are none, or the client of no relay waits.
    func receivedResponse(
        for head: DownloadHead,
        start: GenerationStart,
        stored: StoredResponse
    ) -> StoredResponse? {
        guard request.relay != nil else { return nil }
        // The head of a part describes the whole representation, and keeps its `Set-Cookie`.
        guard start.isVerbatim else {
            return stored.setting(head.response.headerFields[fields: .setCookie])
        }
        let fields = StoredFields.endToEnd(head.response.headerFields)
        guard fields != stored.fields || stored.flags.contains(.withoutValidator) else {
            return nil
        }
        return storedResponse(
            status: head.response.status.code,
            fields: fields,
            of: head.response,
            finalTarget: head.finalTarget,
            hasCookies: head.hasCookies,
            times: (head.requestTime, head.responseTime)
        )
    }

    /// The entry of a representation, and the space reserved for it, or whether it has its body.
    struct Place {
        let entry: DiskEntry
        var promise: RoomPromise?
        var hasBody = false
    }

    /// Whether an entry that the transfer creates is wanted when it is created.
    ///
    /// Not of an abandoned transfer; nor of one that lingers after its entry was removed or
    /// replaced, since no request has asked for a new one.
    func isEntryWanted(in context: TransferContext) -> @Sendable () -> Bool {
        let filled =
            if case .storing(let generation)? = context.outcome { generation.entry } else {
                base?.entry
            }
        return {
            guard !context.isCancelled else { return false }
            return !context.isLingering || filled?.isSuperseded != true
        }
    }

    /// The entry for a representation, or the reason why there is none.
    ///
    /// - Parameters:
    ///   - stored: the head to store.
    ///   - head: the head as received.
    ///   - start: the start of the body.
    ///   - end: the end of the wanted bytes.
    ///   - body: all of the body, if it may be stored at once.
    ///   - context: the transfer; an abandoned one creates no entry, since a removal may have
    ///     followed.
    /// - Returns: the entry.
    /// - Throws: `.cancelled` if the transfer is abandoned.
    func makeEntry(
        for stored: StoredResponse,
        head: DownloadHead,
        start: GenerationStart,
        end: Int64,
        whole body: BodyChunk?,
        context: TransferContext
    ) throws(CacheError) -> Result<Place, NotStored> {
        let storability = storability(of: stored, head: head, start: start)
        if case .notStorable(let reason) = storability {
            recorder.didRefuse(request.key, because: reason)
            if reason.isAboutRepresentation, request.relay == nil {
                // A pinned entry is wanted even if the origin now forbids storing.
                storage.forget(
                    request.key,
                    because: storage.removal(of: request.key),
                    sparesPinned: true
                )
            }
            return .failure(.forbidden(reason))
        }
        if let entry = sharedEntry(for: stored, start: start) {
            return .success(Place(entry: entry))
        }
        do throws(CacheError) {
            let key = storage.key(for: stored, of: request.key)
            let store = try storage.disk.store()
            // Also of a relay, whose own client is told nothing.
            let awaitsDecision =
                !stored.promisedDigests.isEmpty || !request.expectedDigests.isEmpty
            let succession = DiskSuccession(
                cause: storage.removal(of: key),
                // A client of a relay receives errors and redirects without storing them over a
                // pin.
                sparesPinned: !(200...299).contains(stored.status),
                awaitsDecision: awaitsDecision,
                isWanted: isEntryWanted(in: context)
            )
            // After that no lookup promotes the old body again.
            defer { storage.memory.remove(key) }
            // A longer body is made in several steps, which may take the place of another in vain.
            if let body, !awaitsDecision, body.count <= store.options.inlineLimit,
                let entry = try store.storeIfRoom(
                    body,
                    for: key,
                    metadata: stored.encoded(),
                    class: request.entryClass,
                    succession: succession
                )
            {
                return .success(Place(entry: entry, hasBody: true))
            }
            let promise = try promiseRoom(start, end: end, for: key, in: store)
            let entry = try store.makeEntry(
                for: key,
                metadata: stored.encoded(),
                completeLength: start.completeLength,
                class: request.entryClass,
                succession: succession
            )
            BodyJudge.note(promise: stored.promisedDigests, of: entry)
            return .success(Place(entry: entry, promise: promise))
        } catch  where error.code == .notStorable {
            return .failure(.forbidden(.status))
        } catch  where error.code == .cancelled {
            throw error
        } catch  where error.code == .notOwner && head.isStoredByOwner {
            return .failure(.byOwner(error))
        } catch {
            if storage.hasDirectory {
                recorder.didFailToStore(request.key, target: request.target, error: error)
            }
            return .failure(.disk(error))
        }
    }

    /// Reserves space for a whole prefetch, or fails.
    ///
    /// Of several prefetches that do not fit together some are stored then, and the others fail
    /// before they have cost much.
    private func promiseRoom(
        _ start: GenerationStart,
        end: Int64,
        for key: CacheKey,
        in store: DiskStore
    ) throws(CacheError) -> RoomPromise? {
        guard request.isPrefetch, let length = start.completeLength else { return nil }
        let count = min(end, length) - start.offset
        // A body of one block is stored in one call, which succeeds or fails at once.
        guard count > BlockTable.blockSize else { return nil }
        return try store.promiseRoom(count, for: key)
    }

    private func storability(
        of stored: StoredResponse,
        head: DownloadHead,
        start: GenerationStart
    ) -> Storability {
        guard !request.excludes(head.finalTarget) else { return .notStorable(.excluded) }
        let status = head.response.status.code
        // A part is stored as a 200; the rules apply to the status that was received.
        let facts =
            status == stored.status
            ? stored.facts
            : ResponseFacts(
                status: status,
                fields: stored.fields,
                requestTime: head.requestTime,
                responseTime: head.responseTime,
                isPersonal: stored.facts.isPersonal
            )
        return Storability.decide(
            response: facts,
            request: request.facts,
            hasExplicitKey: request.hasExplicitKey,
            isBypassed: request.relay?.upload != nil && request.method == .get,
            isSelective: request.isSelective,
            canCombine: !start.isVerbatim
                && (start.validator != nil || plan.asksForAllAsRange && start.isWhole),
            rules: origins.rules
        )
    }

    /// The entry that another transfer has created for the same representation meanwhile.
    ///
    /// Two readers of a new resource with distant positions need two transfers; the bytes of both
    /// go into one entry if a strong validator says that they are of one representation.
    private func sharedEntry(
        for stored: StoredResponse,
        start: GenerationStart
    ) -> DiskEntry? {
        guard request.policy != .reload, let known = shared.generation,
            let validator = start.validator, validator == known.head.validator,
            stored.isOfSameResource(as: known.head),
            shared.group(for: stored.selectingFields)
                == shared.group(for: known.head.selectingFields),
            known.entry.checkWritable(), !shared.isContradicted(known.entry),
            let stored = stored.keepingPromise(of: known.entry)
        else { return nil }
        let (length, knownLength) = (start.completeLength, known.entry.completeLength)
        guard length == nil || knownLength == nil || length == knownLength else { return nil }
        update(known.entry, head: stored, completeLength: length)
        return known.entry
    }
}

extension DiskStore {
    /// Stores a complete body; nil where the disk refuses it, as it will refuse its bytes to an
    /// entry.
    fileprivate func storeIfRoom(
        _ body: BodyChunk,
        for key: CacheKey,
        metadata: [UInt8],
        class entryClass: DiskEntryClass,
        succession: DiskSuccession
    ) throws(CacheError) -> DiskEntry? {
        do throws(CacheError) {
            return try body.withUnsafeBytes { (bytes) throws(CacheError) in
                try store(
                    bytes,
                    for: key,
                    metadata: metadata,
                    class: entryClass,
                    succession: succession
                )
            }
        } catch  where error.code == .localStorage {
            return nil
        }
    }
}

extension Storability.Reason {
    /// Whether the origin's new representation must not be stored.
    ///
    /// Otherwise the reason concerns this request or this part, and stored responses stay.
    fileprivate var isAboutRepresentation: Bool {
        switch self {
        case .method, .partial, .requestNoStore, .causedByRequest: false
        case .status, .responseNoStore, .isPrivate, .authorization, .freshness, .excluded: true
        }
    }
}

extension StoredResponse {
    /// The head with the digests that an entry's head promises; nil if it promises other ones.
    fileprivate func keepingPromise(of entry: DiskEntry) -> StoredResponse? {
        guard let known = StoredResponse(encoded: entry.metadata) else { return self }
        guard !known.promisedDigests.contradicts(promisedDigests) else { return nil }
        var fields = fields
        for name in ContentDigest.promisingFields where !fields.contains(name) {
            fields[name] = known.fields[name]
        }
        return fields == self.fields ? self : with(fields)
    }

    /// The head with the received `Set-Cookie` fields.
    fileprivate func setting(_ cookies: [HTTPField]) -> StoredResponse {
        guard !cookies.isEmpty else { return self }
        var fields = fields
        fields[fields: .setCookie] = cookies
        return with(fields)
    }
}
