import HTTPCaching
package import HTTPTypes

extension ResponseDisposition {
    /// Decides the meaning of a `response` to a request of `kind`.
    ///
    /// - Parameters:
    ///   - response: The head, as received.
    ///   - kind: The kind of the request.
    ///   - context: Further facts.
    package init(of response: HTTPResponse, to kind: RequestKind, in context: ResponseContext) {
        switch response.status.code {
        case ..<200:
            // Other statuses below 200 are interim responses, which are handled elsewhere.
            self = .unusable("switched to a protocol that was not asked for")
        case 200..<300 where TransferCoding(in: response.headerFields) == .unknown:
            self = .unusable("sent a transfer coding that was not asked for")
        case 206:
            self = Self.partial(response, to: kind, in: context)
        case 304:
            // Row 18. An unrequested 304 names no stored response to continue with.
            self = kind == .revalidation ? .notModified : .restart(.violation("304 unasked"))
        case 412:
            // Row 17.
            self = kind.range == nil ? .unsuccessful : .restart(.representationChanged)
        case 416:
            self = Self.unsatisfied(response, to: kind, in: context)
        case 200..<300:
            self = Self.whole(response, to: kind, in: context)
        case 300..<400 where kind.range == nil:
            // A redirect to be followed was followed before; 300 has a body of its own.
            self = Self.whole(response, to: kind, in: context)
        case let code where StatusCode.isTransient(code):
            // Row 22: the stored bytes stay; the body of an error is no representation.
            self = .retry(
                after: RetryAfter.delay(
                    in: response.headerFields,
                    now: context.responseTime,
                    maximum: context.policy.maximumRetryAfter
                )
            )
        default:
            // Rows 20 and 21.
            self = .unsuccessful
        }
    }

    /// Whether a response that is no 206 says that its body is a part.
    ///
    /// RFC 9110 §14.4 gives `Content-Range` no meaning there, but the body may be that part.
    ///
    /// - Parameters:
    ///   - fields: Its fields.
    ///   - wasAsked: Whether a range was asked for, which what cannot be read may then speak of.
    /// - Returns: Whether it does, or may.
    static func callsPartWhole(_ fields: HTTPFields, wasAsked: Bool) -> Bool {
        guard fields.contains(.contentRange) else { return false }
        do throws(FieldSyntaxError) {
            let length = try ContentLength.parse(in: fields)
            switch try ContentRange.parse(in: fields) {
            case .bytes(let range, let complete):
                return range.lowerBound != 0 || Int64(range.count) != complete ?? length
            case .unsatisfied(let complete): return complete != length
            case nil: return wasAsked
            }
        } catch {
            return wasAsked
        }
    }

    /// Rows 1, 2, 13, 23 and 30: the body of a whole representation.
    private static func whole(
        _ response: HTTPResponse,
        to kind: RequestKind,
        in context: ResponseContext
    ) -> ResponseDisposition {
        let fields = response.headerFields
        guard !callsPartWhole(fields, wasAsked: kind.range != nil) else {
            let words = "called a part the whole"
            return kind.range == nil ? .unusable(words) : .restart(.rangesUntrusted(words))
        }
        let coding = context.policy.keepsCoding ? .identity : ContentCoding(in: fields)
        if case .unknown(let name) = coding {
            return .unusable("sent the content coding '\(name)' although none was asked for")
        }
        // Row 21: no content is not the representation that some bytes were requested of.
        guard kind.range == nil || (response.status.code != 204 && response.status.code != 205)
        else { return .unsuccessful }
        let length: Int64?
        do {
            length = try ContentLength.parse(in: fields)
        } catch {
            return .unusable("sent a Content-Length that is none")
        }
        let isChunked = TransferCoding(in: fields) == .chunked
        let hasNoBody = context.method == .head || [204, 205].contains(response.status.code)
        let validator = Validator(of: fields, responseTime: context.responseTime)
        if response.status.code == 200, coding == .identity, kind != .revalidation,
            context.repeats(validator, completeLength: isChunked ? nil : length),
            kind.generation?.isContradicted(by: response) != true
        {
            return .repeating(
                completeLength: isChunked ? nil : length,
                comparing: context.relation == .same ? 0 : context.comparablePrefix ?? 0
            )
        }
        var start = GenerationStart(completeLength: isChunked ? nil : length, validator: validator)
        // RFC 9110 §15.3.5, §15.3.6: 204 and 205 have no content, whatever their fields say.
        if context.method != .head, hasNoBody { start.completeLength = 0 }
        start.end = start.completeLength
        start.framing =
            isChunked || length != nil || hasNoBody ? .verified : .closeDelimited
        // Row 23: a transforming proxy keeps the origin's tag for other bytes.
        if response.status.code == 203 { start.validator = nil }
        // Row 26: the tag belongs to the coded bytes, not to the stored ones.
        if coding != .identity {
            start = GenerationStart(
                completeLength: nil,
                validator: nil,
                framing: start.framing,
                coding: coding
            )
        }
        return .newGeneration(start)
    }

    /// The complete length in a 416.
    private static func completeLength(of response: HTTPResponse) -> Int64? {
        do throws(FieldSyntaxError) {
            guard case .unsatisfied(let length)? = try ContentRange.parse(in: response.headerFields)
            else { return nil }
            return length
        } catch {
            // An unreadable field says nothing.
            return nil
        }
    }

    /// Rows 15 and 16: no byte at the requested offset.
    private static func unsatisfied(
        _ response: HTTPResponse,
        to kind: RequestKind,
        in context: ResponseContext
    ) -> ResponseDisposition {
        guard let asked = kind.range else { return .unsuccessful }
        guard let length = completeLength(of: response) else {
            // Row 16.
            return .restart(.rangesUntrusted("answered 416 without the complete length"))
        }
        // Row 28: there is nothing to compare.
        if case .overlap = kind { return .restart(.representationChanged) }
        if let generation = kind.generation {
            if let known = generation.completeLength, known != length {
                return .restart(.representationChanged)
            }
            if length == asked.lowerBound { return .alreadyComplete(length: length) }
            if length < asked.lowerBound { return .restart(.representationChanged) }
            return .restart(.rangesUntrusted("answered 416 for bytes that it says exist"))
        }
        if asked.lowerBound == 0 {
            // An empty representation has no first byte to request; a request for the whole works.
            return .restart(.rangesUntrusted("answered 416 for the first byte"))
        }
        guard length > asked.lowerBound else {
            return .rangeNotSatisfiable(completeLength: length)
        }
        return .restart(.rangesUntrusted("answered 416 for bytes that it says exist"))
    }
}

extension ResponseContext {
    /// Row 13: whether a whole body is the stored representation, sent again because the origin
    /// does not support ranges.
    ///
    /// The stored bytes stay then; received bytes are skipped up to the first missing one. A tag
    /// proves it unless the lengths differ. A date proves it together with the length: a change
    /// after the stored response has a later date. Both hold only at the URL of the stored
    /// response; if the query has changed, stored bytes are compared.
    fileprivate func repeats(_ validator: Validator?, completeLength: Int64?) -> Bool {
        guard let validator, let stored = generation, stored.validator == validator,
            relation == .same || (relation == .otherQuery && comparablePrefix != 0)
        else { return false }
        switch validator.kind {
        case .entityTag:
            return completeLength == nil || stored.completeLength == nil
                || completeLength == stored.completeLength
        case .lastModified:
            return completeLength != nil && completeLength == stored.completeLength
        }
    }
}
