import HTTPCaching
import HTTPTypes

// What a head makes: an entry of its own, one that others have made, or none.
extension DownloadOperation {
    /// The head as it is stored: of the whole representation, also where a part brought it.
    func storedResponse(_ head: DownloadHead, _ start: GenerationStart) -> StoredResponse {
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
            // The bytes are decoded on the way in.
            fields[.contentEncoding] = nil
            for name in ContentDigest.promisingFields { fields[name] = nil }
            fields[.contentLength] = start.completeLength.map(String.init)
        }
        var stored = storedResponse(
            status: isPart ? 200 : response.status.code,
            fields: fields,
            of: response,
            finalTarget: head.finalTarget,
            times: (head.requestTime, head.responseTime)
        )
        // Nothing may be joined by a tag that other bytes have as well (rows 23 and 26).
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
        times: (request: WallTime, response: WallTime)
    ) -> StoredResponse {
        StoredResponse(
            status: status,
            fields: fields,
            requestTime: times.request,
            responseTime: times.response,
            origin: request.storedOrigin(finalTarget: finalTarget),
            selectingFields: selectingFields(response.headerFields),
            flags: flags(of: response)
        )
    }

    /// What a stored head says about the request that brought it.
    func flags(of response: HTTPResponse) -> StoredResponse.Flags {
        var flags: StoredResponse.Flags = request.relay == nil ? [] : .relayed
        if hasCookie || response.headerFields.contains(.setCookie) { flags.insert(.personal) }
        return flags
    }

    /// Whether the origin knew which client asked.
    var hasCookie: Bool { request.fields.contains(.cookie) }

    /// What a later request must have in common with this one.
    ///
    /// A private cache in front of an origin may have several clients on one machine. What one got
    /// for its credentials is for the same credentials alone, unless the origin says that it is for
    /// anybody (RFC 9111 §3.5); what is `private` is for the same cookie and credentials, or for
    /// those without any.
    func selectingFields(_ response: HTTPFields) -> [SelectingField] {
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

    /// The head for the client that is waiting: with fields that the `stored` one must not have.
    func receivedResponse(
        _ head: DownloadHead,
        _ start: GenerationStart,
        _ stored: StoredResponse
    ) -> StoredResponse? {
        guard request.relay != nil else { return nil }
        // A part is told about as what is stored, and sets what it sets.
        guard start.isVerbatim else {
            return stored.setting(head.response.headerFields[fields: .setCookie])
        }
        return storedResponse(
            status: head.response.status.code,
            fields: StoredFields.endToEnd(head.response.headerFields),
            of: head.response,
            finalTarget: head.finalTarget,
            times: (head.requestTime, head.responseTime)
        )
    }

    /// Where a representation is stored, and the room that was set aside for it.
    struct Place {
        let entry: DiskEntry
        var promise: RoomPromise?
    }

    /// A new entry for a representation, or why there is none.
    ///
    /// - Parameters:
    ///   - stored: the head.
    ///   - head: the head as it came.
    ///   - start: what it begins.
    ///   - end: where the bytes end that are wanted.
    /// - Returns: where it is stored.
    func makeEntry(
        _ stored: StoredResponse,
        _ head: DownloadHead,
        _ start: GenerationStart,
        end: Int64
    ) -> Result<Place, NotStored> {
        let storability = storability(stored, head, start)
        if case .notStorable(let reason) = storability {
            recorder.didRefuse(request.key, reason)
            if reason.isAboutRepresentation, request.relay == nil {
                // What was pinned is wanted whatever the origin says now.
                storage.forget(
                    request.key,
                    because: storage.removal(of: request.key),
                    sparesPinned: true
                )
            }
            return .failure(.forbidden(reason))
        }
        if let entry = entryOfOthers(stored, head, start) { return .success(Place(entry: entry)) }
        do throws(CacheError) {
            let key = storage.key(for: stored, of: request.key)
            let store = try storage.disk.store()
            let promise = try promiseRoom(start, end: end, for: key, in: store)
            let entry = try store.makeEntry(
                for: key,
                metadata: stored.encoded(),
                completeLength: start.completeLength,
                class: request.entryClass,
                DiskSuccession(
                    cause: storage.removal(of: key),
                    // Another client gets errors and redirects as they are.
                    sparesPinned: !(200...299).contains(stored.status),
                    awaitsDecision: !expectedDigests(of: stored).isEmpty
                )
            )
            storage.memory.remove(key)
            return .success(Place(entry: entry, promise: promise))
        } catch  where error.code == .notStorable {
            return .failure(.forbidden(.status))
        } catch {
            if storage.hasDirectory {
                recorder.didFailToStore(request.key, request.target, error)
            }
            return .failure(.disk(error))
        }
    }

    /// A prefetch has room set aside for all of it, or does without: of several
    /// that do not fit together some are stored then, and the others fail before they have cost
    /// much.
    private func promiseRoom(
        _ start: GenerationStart,
        end: Int64,
        for key: CacheKey,
        in store: DiskStore
    ) throws(CacheError) -> RoomPromise? {
        guard request.isPrefetch, let length = start.completeLength else { return nil }
        let count = min(end, length) - start.offset
        // What is stored in one call fits or does not.
        guard count > BlockTable.blockSize else { return nil }
        return try store.promiseRoom(count, for: key)
    }

    private func storability(
        _ stored: StoredResponse,
        _ head: DownloadHead,
        _ start: GenerationStart
    ) -> Storability {
        let status = head.response.status.code
        // Parts are stored as 200; the rules are about what came.
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
            canCombine: start.validator != nil && !start.isVerbatim,
            rules: origins.rules
        )
    }

    /// The entry that another transfer has made for the same representation meanwhile.
    ///
    /// Two readers that begin far apart in something new are two transfers; the bytes of both
    /// belong into one entry, where a strong validator says that they are of one representation.
    private func entryOfOthers(
        _ stored: StoredResponse,
        _ head: DownloadHead,
        _ start: GenerationStart
    ) -> DiskEntry? {
        guard request.policy != .reload, let known = shared.generation,
            let validator = start.validator, validator == known.head.validator,
            stored.isOfSameResource(as: known.head),
            known.entry.checkWritable(), !shared.isContradicted(known.entry)
        else { return nil }
        let (length, knownLength) = (start.completeLength, known.entry.completeLength)
        guard length == nil || knownLength == nil || length == knownLength else { return nil }
        update(known.entry, stored, completeLength: length)
        return known.entry
    }
}

extension Storability.Reason {
    /// Whether it is the origin's new representation that must not be stored.
    ///
    /// Otherwise it is this request or this part of it, and what others have stored stays.
    fileprivate var isAboutRepresentation: Bool {
        switch self {
        case .method, .partial, .requestNoStore, .causedByRequest: false
        case .status, .responseNoStore, .isPrivate, .authorization, .freshness: true
        }
    }
}

extension StoredResponse {
    /// The head with `Set-Cookie` as it came.
    fileprivate func setting(_ cookies: [HTTPField]) -> StoredResponse {
        guard !cookies.isEmpty else { return self }
        var fields = fields
        fields[fields: .setCookie] = cookies
        return with(fields)
    }
}
