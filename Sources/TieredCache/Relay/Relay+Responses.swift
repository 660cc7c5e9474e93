import FoundationEssentials
import HTTPCaching
import HTTPTypes

// Responses to the client of a relayed request.
extension Relay {
    /// A response with its body, cut to the client's range.
    func relayed(_ response: CacheResponse, answer: ConditionalResponse) -> RelayResponse {
        relayed(
            status: response.status,
            fields: response.fields,
            cacheStatus: response.cacheStatus,
            completeLength: response.completeLength,
            body: response.body.source,
            answer: answer
        )
    }

    func relayed(
        status: HTTPResponse.Status,
        fields: HTTPFields,
        cacheStatus: CacheStatus,
        completeLength: Int64?,
        body: any BodySource,
        answer: ConditionalResponse
    ) -> RelayResponse {
        var (status, fields, body) = (status, fields, body)
        switch answer {
        case .whole, .forOrigin:
            if request.method != .head, !status.hasNoContent {
                fields[.contentLength] = completeLength.map(String.init)
            } else if request.method == .head, cacheStatus.isHit, let completeLength {
                fields[.contentLength] = String(completeLength)
            }
        case .partial(let range):
            status = .partialContent
            fields[.contentLength] = String(range.count)
            fields[.contentRange] =
                ContentRange.bytes(range, completeLength: completeLength).fieldValue
        case .notModified:
            (status, body) = (.notModified, MemoryBody(Data()))
            fields = ConditionalResponse.notModifiedFields(fields)
        case .rangeNotSatisfiable:
            (status, body) = (.rangeNotSatisfiable, MemoryBody(Data()))
            fields = ConditionalResponse.notModifiedFields(fields)
            fields[.contentLength] = "0"
            fields[.contentRange] = completeLength.map {
                ContentRange.unsatisfied(completeLength: $0).fieldValue
            }
        }
        return RelayResponse(
            status: status,
            fields: fields,
            cacheStatus: cacheStatus,
            body: body,
            now: time.wallTime()
        )
    }

    /// The response to `only-if-cached` without a usable stored response (RFC 9111 §5.2.1.7).
    func gatewayTimeout(_ reason: ReuseDecision.Reason?) -> RelayResponse {
        let why: CacheStatus.ForwardReason =
            reason == nil ? .uriMiss : reason == .varyMiss ? .varyMiss : .stale
        let status = CacheStatus.forwarded(why, detail: "only-if-cached")
        return RelayResponse(
            status: .gatewayTimeout,
            fields: [.contentLength: "0"],
            cacheStatus: status,
            body: MemoryBody(Data()),
            now: time.wallTime()
        )
    }

    // MARK: HEAD

    /// Updates the stored response to GET from the response to a HEAD (RFC 9111 §4.3.5).
    func freshen(_ stored: StoredEntry, byHead answer: StoredResponse) async {
        guard answer.status == 200, stored.head.status == 200 else { return }
        let identifies = Freshening.identifies(
            head: answer.fields,
            storedFields: stored.head.fields
        )
        var head = stored.head
        if identifies {
            head = head.freshened(by: answer, rules: responder.judge.rules)
        } else {
            head.flags.insert(.invalidated)
        }
        await responder.storage.replaceHead(of: stored, by: head)
    }
}

extension HTTPResponse.Status {
    fileprivate var hasNoContent: Bool { [204, 304].contains(code) }
}
