import HTTPCaching
import HTTPTypes

/// The work of one flight: brings a range of one representation, or asks whether it has changed.
struct DownloadOperation: Sendable {
    /// Why the bytes of a response are not stored.
    enum NotStored: Error, Sendable {
        /// The rules of HTTP, the request, or the application forbid it.
        case forbidden(Storability.Reason)
        /// The disk cannot be used, is full, or belongs to another process.
        case disk(CacheError)
    }

    let engine: Engine
    let fill: Fill
    /// The queue's group of this flight; not always that of the fill.
    let group: FlightGroup
    let request: CacheRequest
    let facts: RequestFacts
    let plan: DownloadPlan
    /// What the bytes are joined to if the origin still has it.
    let base: Fill.Generation?
    /// What a 304 is about.
    let held: HeldResponse?
    /// Whether nothing was held when the request looked, so that what is there by now is news.
    var isAfterMiss = false
    /// The body that was held and will not do, if there was one.
    var lacking: UInt64?
    /// The byte of `base` that was missing when the flight was asked for.
    var firstMissing: Int64?

    /// Runs on a thread that may block on the disk.
    func run(_ context: FlightContext) async -> Result<Void, CacheError> {
        if let brought = broughtMeanwhile() {
            fill.didReceiveHead(
                .storing(brought),
                flight: context.id,
                group: fill.joinableGroup(for: brought.entry)
            )
            return .success(())
        }
        let sink = FillSink(self, context: context)
        defer { fill.didEnd(context.id) }
        engine.didStart(self)
        var result = await download(into: sink)
        if case .success(let outcome) = result, let failure = mismatchInPassing(sink, outcome) {
            result = .failure(failure)
        }
        do throws(CacheError) {
            try sink.finish(result)
        } catch {
            engine.didFailToStore(request, error)
        }
        if case .success(let outcome) = result, case .completed = outcome.end,
            let failure = integrityFailure(of: sink.generation)
        {
            result = .failure(failure)
        }
        didEnd(result, sink, flight: context.id)
        engine.didFinish(
            self,
            result,
            received: sink.bytesReceived,
            stored: sink.bytesStored,
            isComplete: sink.generation?.entry.isComplete ?? false
        )
        fill.signal.bump()
        return result.map { _ in }
    }

    /// What another flight has begun to bring between the request's look and this flight's start.
    ///
    /// Its bytes are shared, also those that it has passed: each is fetched once (invariant 8).
    private func broughtMeanwhile() -> Fill.Generation? {
        if let base, let firstMissing, base.entry.held(at: firstMissing) != nil { return base }
        guard isAfterMiss, let generation = fill.generation, !generation.entry.isSuperseded,
            generation.entry.generation != lacking
        else { return nil }
        return generation
    }

    private func didEnd(
        _ result: Result<DownloadOutcome, CacheError>,
        _ sink: FillSink,
        flight: FlightID
    ) {
        guard case .success(let outcome) = result else { return }
        if request.relay == nil { engine.didLearn(from: outcome, of: request) }
        if case .unsuccessful(let response) = outcome.end {
            didEnd(with: response, outcome, flight: flight)
        }
        if outcome.areRangesUntrusted, let generation = sink.generation,
            !generation.head.flags.contains(.withoutRanges)
        {
            var head = generation.head
            head.flags.insert(.withoutRanges)
            update(generation.entry, head)
        }
    }

    private func download(into sink: FillSink) async -> Result<DownloadOutcome, CacheError> {
        do throws(CacheError) {
            if !request.target.isLoopback { engine.network.start() }
            let downloader = Downloader(
                transport: engine.transport,
                time: engine.time,
                network: engine.network
            )
            return .success(try await downloader.run(plan, into: sink))
        } catch {
            return .failure(error)
        }
    }

    // MARK: What to store

    /// The head as it is stored: of the whole representation, also where a part brought it.
    func storedResponse(_ head: DownloadHead, _ start: GenerationStart) -> StoredResponse {
        let response = head.response
        let isPart = response.status == .partialContent && !start.isVerbatim
        var fields =
            isPart
            ? StoredFields.ofRepresentation(
                partial: response.headerFields,
                completeLength: start.completeLength,
                rules: engine.rules
            ) : StoredFields.of(response.headerFields, rules: engine.rules)
        if start.coding != .identity {
            // The bytes are decoded on the way in.
            fields[.contentEncoding] = nil
            for name in ContentDigest.promisingFields { fields[name] = nil }
            fields[.contentLength] = start.completeLength.map(String.init)
        }
        return storedResponse(
            status: isPart ? 200 : response.status.code,
            fields: fields,
            of: response,
            finalTarget: head.finalTarget,
            times: (head.requestTime, head.responseTime)
        )
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
            selectingFields: VaryMatch.selectingFields(
                response: response.headerFields,
                request: request.fields
            ),
            flags: request.relay == nil ? [] : .relayed
        )
    }

    /// The head for the client that is waiting: with fields that must not be stored.
    func receivedResponse(_ head: DownloadHead, _ start: GenerationStart) -> StoredResponse? {
        guard request.relay != nil, start.isVerbatim else { return nil }
        return storedResponse(
            status: head.response.status.code,
            fields: StoredFields.endToEnd(head.response.headerFields),
            of: head.response,
            finalTarget: head.finalTarget,
            times: (head.requestTime, head.responseTime)
        )
    }

    /// A new entry for a representation, or why there is none.
    func makeEntry(
        _ stored: StoredResponse,
        _ head: DownloadHead,
        _ start: GenerationStart
    ) -> Result<DiskEntry, NotStored> {
        let storability = storability(stored, head, start)
        if case .notStorable(let reason) = storability {
            if reason.isAboutRepresentation, request.relay == nil { engine.forget(request.key) }
            return .failure(.forbidden(reason))
        }
        if let entry = entryOfOthers(stored, head, start) { return .success(entry) }
        do throws(CacheError) {
            let key = engine.storageKey(for: stored, request)
            let entry = try engine.disk.store().makeEntry(
                for: key,
                metadata: stored.encoded(),
                completeLength: start.completeLength,
                class: request.entryClass
            )
            engine.memory.remove(key)
            return .success(entry)
        } catch {
            if engine.configuration.directory != nil { engine.didFailToStore(request, error) }
            return .failure(.disk(error))
        }
    }

    private func storability(
        _ stored: StoredResponse,
        _ head: DownloadHead,
        _ start: GenerationStart
    ) -> Storability {
        Storability.decide(
            response: ResponseFacts(
                status: head.response.status.code,
                fields: stored.fields,
                requestTime: head.requestTime,
                responseTime: head.responseTime
            ),
            request: facts,
            hasExplicitKey: request.hasExplicitKey || request.isAnsweredForGet(stored),
            canCombine: start.validator != nil && !start.isVerbatim,
            rules: engine.rules
        )
    }

    /// The entry that another flight has made for the same representation meanwhile.
    ///
    /// Two readers that begin far apart in something new are two flights; the bytes of both belong
    /// into one entry, where a strong validator says that they are of one representation.
    private func entryOfOthers(
        _ stored: StoredResponse,
        _ head: DownloadHead,
        _ start: GenerationStart
    ) -> DiskEntry? {
        guard request.policy != .reload, let known = fill.generation,
            let validator = start.validator, validator == known.head.validator,
            !known.entry.isSuperseded
        else { return nil }
        // A date is a validator at the origin that gave it alone.
        if validator.kind == .lastModified,
            known.head.finalTarget?.origin != head.finalTarget.origin
        {
            return nil
        }
        let (length, knownLength) = (start.completeLength, known.entry.completeLength)
        guard length == nil || knownLength == nil || length == knownLength else { return nil }
        update(known.entry, stored, completeLength: length)
        return known.entry
    }

    /// The error for readers of what the origin has replaced.
    func changed() -> CacheError {
        CacheError(
            .representationChanged,
            "\(request.target.redacted) changed at the origin; start again from 0"
        )
    }

    // MARK: What the origin confirmed

    /// A part's head freshened by the 206 that goes with it.
    func freshened(
        _ base: Fill.Generation,
        by head: DownloadHead,
        completeLength: Int64?
    ) -> StoredResponse {
        let isNews = completeLength != nil && base.entry.completeLength == nil
        guard held != nil || isNews else { return base.head }
        if held != nil { engine.didRevalidate(request, isUnchanged: true) }
        let freshened = base.head.freshened(
            by: head.response.headerFields,
            requestTime: head.requestTime,
            responseTime: head.responseTime,
            rules: engine.rules
        )
        update(base.entry, freshened, completeLength: completeLength)
        return freshened
    }

    /// The head of an entry whose origin has sent all of it for a part.
    func noteWithoutRanges(
        _ head: StoredResponse,
        _ response: HTTPResponse,
        _ entry: DiskEntry
    ) -> StoredResponse {
        guard response.headerFields[.acceptRanges]?.lowercased() != "bytes",
            !head.flags.contains(.withoutRanges)
        else { return head }
        var head = head
        head.flags.insert(.withoutRanges)
        update(entry, head)
        return head
    }

    /// A 304: freshens what is held in either tier.
    func didConfirm(_ head: DownloadHead, flight: FlightID) {
        let fields = head.response.headerFields
        guard let held, Freshening.identifies(fields, storedFields: held.head.fields) else {
            engine.didRevalidate(request, isUnchanged: false)
            fill.didReceiveHead(.notModified(nil), flight: flight, group: group)
            return
        }
        let freshened = held.head.freshened(
            by: fields,
            requestTime: head.requestTime,
            responseTime: head.responseTime,
            rules: engine.rules
        )
        engine.didRevalidate(request, isUnchanged: true)
        switch held.body {
        case .disk(let entry):
            update(entry, freshened)
        case .memory(let entry):
            engine.memory.insert(
                MemoryEntry(
                    head: freshened,
                    body: entry.body,
                    generation: entry.generation
                ),
                forKey: held.key
            )
            updateDisk(held.key, from: held.head, to: freshened)
        }
        let confirmation = Fill.Confirmation(asked: held.head, freshened: freshened)
        fill.didReceiveHead(.notModified(confirmation), flight: flight, group: group)
    }

    /// Freshens the disk's copy of a response that the memory tier answered with.
    private func updateDisk(
        _ key: CacheKey,
        from old: StoredResponse,
        to new: StoredResponse
    ) {
        guard let store = engine.disk.openStore else { return }
        do throws(CacheError) {
            guard let entry = try store.entry(for: key, isUse: false),
                let stored = StoredResponse(encoded: entry.metadata),
                stored.hasValidators(of: old)
            else { return }
            update(entry, new)
        } catch {
            engine.didFailToStore(request, error)
        }
    }

    func update(
        _ entry: DiskEntry,
        _ head: StoredResponse,
        completeLength: Int64? = nil
    ) {
        do throws(CacheError) {
            try entry.updateMetadata(head.encoded(), completeLength: completeLength)
        } catch {
            engine.didFailToStore(request, error)
        }
    }
}

extension Storability.Reason {
    /// Whether it is the origin's new representation that must not be stored.
    ///
    /// Otherwise it is this request or this part of it, and what others have stored stays.
    fileprivate var isAboutRepresentation: Bool {
        switch self {
        case .method, .partial, .requestNoStore: false
        case .status, .responseNoStore, .isPrivate, .authorization, .freshness: true
        }
    }
}

extension CacheRequest {
    /// What is remembered of the request beside its answer.
    func storedOrigin(finalTarget: TargetURI? = nil) -> StoredResponse.Origin {
        StoredResponse.Origin(
            method: method.rawValue,
            url: target.string,
            finalURL: finalTarget == target ? nil : finalTarget?.string,
            keyName: keyName
        )
    }

    /// How the disk tier is to treat the entry.
    var entryClass: DiskEntryClass {
        var result: DiskEntryClass = []
        if isPinned { result.insert(.pinned) }
        if isPrefetch { result.insert(.prefetched) }
        return result
    }
}
