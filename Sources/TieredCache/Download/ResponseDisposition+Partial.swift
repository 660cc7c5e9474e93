import HTTPCaching
import HTTPTypes

extension ResponseDisposition {
    /// Rows 3 to 12: a 206, all fields of which are checked before its first byte is used.
    static func partial(
        _ response: HTTPResponse,
        to kind: RequestKind,
        in context: ResponseContext
    ) -> ResponseDisposition {
        guard let asked = kind.range else {
            return .restart(.violation("206 unasked"))  // Row 3.
        }
        let fields = response.headerFields
        let part: Range<Int64>
        let completeLength: Int64?
        switch contentRange(of: fields) {
        case .success(let range): (part, completeLength) = range
        case .failure(let failure): return .restart(.rangesUntrusted(failure.reason))
        }
        guard part.lowerBound == asked.lowerBound else {
            return .restart(.rangesUntrusted("sent another range than it was asked for"))  // Row 7.
        }
        guard part.upperBound <= asked.upperBound else {
            return .restart(.rangesUntrusted("sent more bytes than it was asked for"))  // Row 7.
        }
        guard context.policy.keepsCoding || ContentCoding(in: fields) == .identity else {
            // Row 12: offsets count coded bytes, so nothing can be combined.
            return .restart(.rangesUntrusted("sent a coded range"))
        }
        guard let generation = kind.generation else {
            return .newGeneration(
                GenerationStart(
                    offset: part.lowerBound,
                    end: part.upperBound,
                    completeLength: completeLength,
                    validator: Validator(of: fields, responseTime: context.responseTime)
                )
            )
        }
        if let known = generation.completeLength, let completeLength, known != completeLength {
            return .restart(.representationChanged)  // Row 8.
        }
        if let known = generation.completeLength, part.upperBound > known {
            return .restart(.representationChanged)  // Row 8, with '*' for the length.
        }
        if generation.isContradicted(by: response) {
            return .restart(.representationChanged)  // Row 8.
        }
        let length = completeLength ?? generation.completeLength
        switch generation.validator?.comparison(with: fields) {
        case .same:
            break
        case .absent where context.policy.isLenient:
            break  // Row 9: If-Range guarantees it.
        case nil
        where kind.comparedCount > 0 && completeLength != nil
            && completeLength == generation.completeLength:
            break  // Row 28: the length and the bytes themselves must agree.
        case .absent, .different, nil:
            return .restart(.representationChanged)  // Row 8.
        }
        guard kind.comparedCount == 0 else {
            let end = asked.lowerBound + kind.comparedCount
            return .comparing(part, until: end, completeLength: length)
        }
        // Rows 4, 5 and 6.
        return .continuing(part, completeLength: length)
    }

    private struct Unusable: Error {
        let reason: String
    }

    /// Rows 10 and 11: without one range that agrees with the length, bytes have no offset.
    private static func contentRange(
        of fields: HTTPFields
    ) -> Result<(Range<Int64>, completeLength: Int64?), Unusable> {
        let mediaType = fields[.contentType]?.lowercased() ?? ""
        // RFC 9110 §15.3.7.2 forbids this response to a request for one range.
        guard !mediaType.hasPrefix("multipart/byteranges") else {
            return .failure(Unusable(reason: "sent several ranges for one"))
        }
        do {
            guard case .bytes(let range, let length) = try ContentRange.parse(in: fields) else {
                return .failure(Unusable(reason: "sent a part without saying which"))
            }
            // RFC 9112 §6.3: with a transfer coding the length does not count.
            if fields[.transferEncoding] == nil,
                let partLength = try ContentLength.parse(in: fields),
                partLength != Int64(range.count)
            {
                return .failure(Unusable(reason: "sent a part of another length than its range"))
            }
            return .success((range, length))
        } catch {
            return .failure(Unusable(reason: "sent a part whose range cannot be read"))
        }
    }
}
