import HTTPTypes
import NIOHTTP1

/// The status, fields and bytes of a correct response, before the script changes its head.
struct OriginDraft {
    var status: Int
    var source: OriginBodySource
    var range: Range<Int64>
    var fields: HTTPFields
    var framing: OriginResource.Framing

    init(
        status: Int,
        source: OriginBodySource,
        range: Range<Int64>? = nil,
        fields: HTTPFields,
        framing: OriginResource.Framing = .contentLength
    ) {
        self.status = status
        self.source = source
        self.range = range ?? 0..<source.length
        self.fields = fields
        self.framing = framing
    }

    /// Whether the status allows a body: 304 and 204 do not (RFC 9110 §15).
    var mayHaveBody: Bool { status != 304 && status != 204 }

    /// The response of a correct origin for `resource`, after conditions and range.
    static func of(
        _ resource: OriginResource,
        for request: OriginRequest,
        behaviour: OriginBehaviour
    ) -> OriginDraft {
        let empty = OriginBodySource.bytes([])
        if !behaviour.ignoresConditions {
            if OriginConditions.failsPrecondition(request: request, resource: resource) {
                return OriginDraft(status: 412, source: empty, fields: [:])
            }
            if OriginConditions.isNotModified(request: request, resource: resource) {
                return OriginDraft(status: 304, source: empty, fields: validators(of: resource))
            }
        }
        if behaviour.isGzipCoded { return gzipCoded(resource) }
        let selection = selection(of: resource, for: request, behaviour: behaviour)
        return selected(selection, of: resource)
    }

    /// The encoded head: status line and fields, with the script's overrides, omissions and raw
    /// lines.
    func head(_ behaviour: OriginBehaviour, closes: Bool, date: String) -> [UInt8] {
        var fields = fields
        fields[.date] = fields[.date] ?? date
        switch framing {
        case _ where !mayHaveBody: break
        case .contentLength: fields[.contentLength] = String(range.count)
        case .chunked: fields[.transferEncoding] = "chunked"
        case .close: break
        }
        if closes { fields[.connection] = "close" }
        for field in behaviour.overrides { fields[field.name] = nil }
        fields.append(contentsOf: behaviour.overrides)
        var text = "HTTP/1.1 \(status) \(HTTPResponseStatus(statusCode: status).reasonPhrase)\r\n"
        for field in fields where !behaviour.omissions.contains(field.name) {
            text += "\(field.name.rawName): \(field.value)\r\n"
        }
        for line in behaviour.rawFieldLines { text += line + "\r\n" }
        return Array((text + "\r\n").utf8)
    }

    private static func selection(
        of resource: OriginResource,
        for request: OriginRequest,
        behaviour: OriginBehaviour
    ) -> OriginConditions.Selection {
        // `Range` applies to GET only (RFC 9110 §14.2).
        guard resource.acceptsRanges, !behaviour.ignoresRange, request.method == "GET",
            OriginConditions.allowsPart(request: request, resource: resource)
        else { return .whole }
        return OriginConditions.selection(request.fields[.range], length: resource.length)
    }

    private static func selected(
        _ selection: OriginConditions.Selection,
        of resource: OriginResource
    ) -> OriginDraft {
        var fields = representationFields(of: resource)
        let length = resource.length
        switch selection {
        case .whole:
            return OriginDraft(
                status: 200,
                source: source(of: resource),
                fields: fields,
                framing: resource.framing
            )
        case .part(let range):
            fields[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
            return OriginDraft(
                status: 206,
                source: source(of: resource),
                range: range,
                fields: fields,
                framing: resource.framing
            )
        case .unsatisfiable:
            return OriginDraft(
                status: 416,
                source: .bytes([]),
                fields: [.contentRange: "bytes */\(length)"]
            )
        }
    }

    private static func gzipCoded(_ resource: OriginResource) -> OriginDraft {
        let source = source(of: resource)
        precondition(source.length <= 16 << 20, "a gzip-coded body must fit into memory")
        let plain = [UInt8](unsafeUninitializedCapacity: Int(source.length)) { buffer, count in
            count = Int(source.length)
            source.fill(
                UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count]
                ),
                from: 0
            )
        }
        var fields = representationFields(of: resource)
        fields[.contentEncoding] = "gzip"
        return OriginDraft(
            status: 200,
            source: .bytes(StoredGzip.encode(plain)),
            fields: fields,
            framing: resource.framing
        )
    }

    private static func source(of resource: OriginResource) -> OriginBodySource {
        switch resource.body {
        case .bytes(let bytes): .bytes(bytes)
        case .padded(let head, let zeros, let tail): .padded(head, zeros: zeros, tail)
        case .generated: resource.generatedBody.map { .generated($0) } ?? .bytes([])
        }
    }

    private static func validators(of resource: OriginResource) -> HTTPFields {
        var fields = resource.fields
        fields[.eTag] = resource.entityTagValue
        fields[.lastModified] = resource.lastModified
        return fields
    }

    private static func representationFields(of resource: OriginResource) -> HTTPFields {
        var fields = validators(of: resource)
        fields[.contentType] = resource.contentType
        if resource.acceptsRanges { fields[.acceptRanges] = "bytes" }
        return fields
    }
}
