import FoundationEssentials
import HTTPCaching
package import HTTPTypes

extension CacheRequest {
    /// Fields that choose a representation for few targets: requests of the application that differ
    /// in no others share a transfer until its response says that it varies by one of them.
    package static let negotiatingFields: Set<String> = ["accept-language", "origin"]

    /// Equal exactly for requests that may share a transfer (invariant 8): method, fields, body.
    var selector: String {
        // `Via` selects nothing: what a guest's proxy asks of the owner shares the owner's transfers.
        let fields = fields.filter { field in
            let name = field.name.canonicalName
            return name != "via" && (relay != nil || !Self.negotiatingFields.contains(name))
        }
        if method == .get, fields.isEmpty, body == nil, relay == nil { return "" }
        var parts = [method.rawValue]
        // A relayed response and a decoded, redirected one are never one transfer.
        if relay != nil { parts.append("relayed") }
        // A length in front of each part keeps ("a", "bc") and ("ab", "c") apart.
        for field in fields.sorted(by: { $0.name.canonicalName < $1.name.canonicalName }) {
            parts.append("\(field.name.canonicalName.utf8.count):\(field.name.canonicalName)")
            parts.append("\(field.value.utf8.count):\(field.value)")
        }
        if let body {
            parts.append(body.withUnsafeBytes { SHA256Digest.hex(of: $0) })
        }
        return parts.joined(separator: " ")
    }
}

extension CacheRequest {
    /// Whether the engine sets a field itself, so that a request must not contain it.
    package static func isOwnField(_ field: HTTPField) -> Bool {
        guard DownloadRequest.ownFields.contains(field.name) else { return false }
        // A field with the value that is sent in any case does no harm.
        return field.name != .acceptEncoding || field.value.lowercased() != "identity"
    }

    /// Whether the client of a relay has set a precondition or a range, on which an error may
    /// depend.
    var isSelective: Bool {
        relay != nil && (range != nil || fields.contains(.range) || fields.hasPrecondition)
    }
}

extension HTTPFields {
    private static let preconditions: [HTTPField.Name] = [
        .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince,
    ]

    /// Whether the response depends on the client's stored representation (RFC 9110 §13.1).
    var hasPrecondition: Bool { Self.preconditions.contains { contains($0) } }
}
