import HTTPCaching
package import HTTPTypes

extension ResponseDisposition {
    /// Decides the meaning of a `response` that is relayed to a client.
    ///
    /// nil if the table for the application's own requests decides.
    ///
    /// | request | response | meaning |
    /// | --- | --- | --- |
    /// | revalidation | 304 | the stored response is current |
    /// | any | 1xx, or a transfer coding beside or in place of chunked | nothing to use |
    /// | any but resume | 500, 502, 503, 504, and a stored response may replace it | the error |
    /// | range of the engine | 206, or a part that calls itself whole | checked by the other table |
    /// | more of the stored generation | any | decided by the other table |
    /// | all of it, as its ranges are not trusted | 200 | decided by the other table |
    /// | any other | any other | a response, with its body |
    ///
    /// - Parameters:
    ///   - response: The head, as received.
    ///   - kind: The kind of the request.
    ///   - relay: How responses are relayed.
    ///   - context: Further facts.
    package init?(
        relaying response: HTTPResponse,
        to kind: RequestKind,
        by relay: RelayPlan,
        in context: ResponseContext
    ) {
        let status = response.status.code
        // No switch of protocols was requested, and the fields that name one have been dropped.
        guard status >= 200 else {
            self = .unusable("answered \(status) instead of a final status")
            return
        }
        guard Self.hasUsableTransferCoding(response.headerFields) else {
            self = .unusable("sent a transfer coding that it was not asked for")
            return
        }
        switch kind {
        case .resume, .overlap: return nil
        case .full where status == 200 && context.generation != nil: return nil
        case .revalidation where status == 304: return nil
        case .initialRange
        where status == 206 || Self.callsPartWhole(response.headerFields, wasAsked: true):
            return nil
        default: break
        }
        if relay.hasFallback, StatusCode.isStaleIfErrorStatus(status) {
            self = .unsuccessful
            return
        }
        self = Self.verbatim(response, in: context)
    }

    /// Whether the end of the body can be determined, and the client can understand its bytes.
    ///
    /// An unknown coding is read to the end of the connection (RFC 9112 §6.3). A known one would
    /// have to be decoded here, and chunks that are not the only coding can be read in two ways.
    private static func hasUsableTransferCoding(_ fields: HTTPFields) -> Bool {
        guard let coding = fields[.transferEncoding]?.lowercased(), coding != "chunked" else {
            return true
        }
        return !["chunked", "gzip", "deflate", "compress"].contains { coding.contains($0) }
    }

    private static func verbatim(
        _ response: HTTPResponse,
        in context: ResponseContext
    ) -> ResponseDisposition {
        let fields = response.headerFields
        guard response.status.code == 206 || !callsPartWhole(fields, wasAsked: false) else {
            return .unusable("called a part the whole")
        }
        let hasNoBody =
            context.method == .head || [204, 205, 304].contains(response.status.code)
        let coding = TransferCoding(in: fields)
        let length: Int64?
        do {
            length = hasNoBody ? 0 : coding != .none ? nil : try ContentLength.parse(in: fields)
        } catch {
            return .unusable("sent a Content-Length that is none")
        }
        var start = GenerationStart(
            end: length,
            completeLength: length,
            // Only a 200 is a whole representation, which a part can be combined with later.
            validator: response.status.code == 200
                ? Validator(of: fields, responseTime: context.responseTime) : nil,
            framing: coding == .chunked || length != nil ? .verified : .closeDelimited
        )
        start.isVerbatim = true
        return .newGeneration(start)
    }
}
