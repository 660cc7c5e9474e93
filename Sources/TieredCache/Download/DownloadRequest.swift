package import FoundationEssentials
package import HTTPCaching
package import HTTPTypes

/// The kind of a request, which determines the responses that it may get.
package enum RequestKind: Hashable, Sendable {
    /// The whole representation, without `Range` ("F" in the table of responses).
    case full
    /// A range of an unknown representation.
    case initialRange(Range<Int64>)
    /// More of the stored generation: `Range` with `If-Range` ("R" in the table).
    case resume(Range<Int64>, Generation)
    /// More of the stored generation, concurrent with other requests for it: `Range` with
    /// `If-Match`, so that a change brings no body ("S" in the table).
    case segment(Range<Int64>, Generation)
    /// More of a generation whose validator does not hold at the requested URL, or that has none
    /// ("U" in the table). The first `stored` bytes are stored, and must be the same. If they do
    /// not end at the first missing byte, the range has no others, and the next request is for the
    /// missing ones.
    case overlap(Range<Int64>, Generation, stored: Int64)
    /// A validation of the stored generation, with the conditional fields.
    case revalidation

    /// The requested range, or nil.
    package var range: Range<Int64>? {
        switch self {
        case .initialRange(let range), .resume(let range, _), .segment(let range, _),
            .overlap(let range, _, _):
            range
        case .full, .revalidation: nil
        }
    }
}

extension RequestKind {
    /// The number of requested bytes that are stored and must be the same.
    package var comparedCount: Int64 {
        guard case .overlap(_, _, let stored) = self else { return 0 }
        return stored
    }

    /// The generation to combine the bytes with, or nil if they start a new one.
    package var generation: Generation? {
        switch self {
        case .resume(_, let generation), .segment(_, let generation),
            .overlap(_, let generation, _):
            generation
        case .full, .initialRange, .revalidation: nil
        }
    }
}

/// One exchange to make: its kind, and the request to send.
package struct DownloadRequest: Hashable, Sendable {
    /// The kind of the request.
    package let kind: RequestKind
    /// The URL of the request.
    package let target: TargetURI
    /// The complete head.
    package var head: HTTPRequest
    /// The body, or nil.
    package let body: Data?

    /// Fields that frame the message, belong to one connection, or are set by the engine.
    static let ownFields: [HTTPField.Name] =
        [
            .connection, .contentLength, .transferEncoding, .te, .trailer, .upgrade,
            .range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince,
            .acceptEncoding,
        ] + ["Host", "Keep-Alive", "Proxy-Connection"].compactMap { HTTPField.Name($0) }

    /// The fields of a request that has none of the name.
    package static let defaultFields: HTTPFields = [.accept: "*/*", .userAgent: "TieredCache"]

    /// Builds the request for one hop.
    ///
    /// - Parameters:
    ///   - kind: The kind of the request.
    ///   - plan: The plan of the download.
    ///   - chain: The redirects followed so far.
    ///   - bypassesCaches: Whether caches on the path must not answer from their stores.
    package init(
        kind: RequestKind,
        plan: DownloadPlan,
        chain: RedirectChain,
        bypassesCaches: Bool
    ) {
        self.kind = kind
        target = chain.target
        guard plan.relay == nil else {
            body = plan.body
            head = Self.relayedHead(kind, plan: plan)
            return
        }
        body = chain.keepsBody ? plan.body : nil
        var fields = plan.fields
        if !fields.isEmpty { for name in Self.ownFields { fields[name] = nil } }
        if fields[.authorization] == nil, let basic = plan.target.basicAuthorization {
            fields[.authorization] = basic
        }
        if chain.dropsCredentials {
            for name in plan.secretFields { fields[name] = nil }
            // It spoke for a request to the first origin; AsyncHTTPClient drops it as well.
            fields[.origin] = nil
        }
        if let cookies = chain.cookies.field(for: target, beside: fields[.cookie]) {
            // As one field: RFC 6265 §5.4 allows no more in HTTP/1.1.
            fields[values: .cookie] = [cookies]
        }
        // RFC 9110 §15.4: fields that are specific to the content go with it.
        if !chain.keepsBody { fields[.contentType] = nil }
        for field in Self.defaultFields where fields[field.name] == nil { fields.append(field) }
        // Ranges count coded bytes, and a coded body cannot be combined with a decoded one.
        fields[.acceptEncoding] = "identity"
        if bypassesCaches { fields[.cacheControl] = "no-cache" }
        if let via = plan.via, let name = HTTPField.Name("Via") {
            fields[name] = fields[name].map { "\($0), \(via)" } ?? via
        }
        Self.select(kind, plan: plan, in: &fields)
        head = HTTPRequest(
            method: chain.method,
            scheme: chain.target.scheme.rawValue,
            authority: chain.target.authority,
            path: chain.target.originForm,
            headerFields: fields
        )
    }

    /// The client's own head, without connection fields and with the engine's range.
    private static func relayedHead(_ kind: RequestKind, plan: DownloadPlan) -> HTTPRequest {
        // `Relay.init` has removed the hop-by-hop fields.
        var fields = plan.fields
        for name in relayedOwnFields { fields[name] = nil }
        if kind != .full {
            // The engine's range selects the bytes; the relay evaluates the client's conditions
            // itself.
            for name in selectingFields { fields[name] = nil }
        }
        select(kind, plan: plan, in: &fields)
        return HTTPRequest(
            method: plan.method,
            scheme: plan.target.scheme.rawValue,
            authority: plan.target.authority,
            path: plan.target.originForm,
            headerFields: fields
        )
    }

    private static let relayedOwnFields: [HTTPField.Name] =
        [.contentLength] + ["Host"].compactMap { HTTPField.Name($0) }

    private static let selectingFields: [HTTPField.Name] = [
        .range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince,
    ]

    private static func select(
        _ kind: RequestKind,
        plan: DownloadPlan,
        in fields: inout HTTPFields
    ) {
        if let range = kind.range {
            let spec: ByteRangeSpec =
                range.upperBound == .max ? .openEnded(from: range.lowerBound) : .bounded(range)
            fields[.range] = RangeRequest(spec).fieldValue
        }
        switch kind {
        case .resume(_, let generation), .overlap(_, let generation, _):
            // The text of the response, not a date made of it: some origins compare it as text.
            fields[.ifRange] = generation.validator?.ifRangeValue
        case .segment(_, let generation):
            guard let validator = generation.validator else { break }
            let isDate = validator.kind == .lastModified
            // Chromium does the same for parallel requests: with `If-Range` each would get the
            // whole of a changed file.
            fields[isDate ? .ifUnmodifiedSince : .ifMatch] = validator.ifRangeValue
        case .revalidation:
            fields.append(contentsOf: plan.conditionalFields)
        case .full, .initialRange:
            break
        }
    }
}
