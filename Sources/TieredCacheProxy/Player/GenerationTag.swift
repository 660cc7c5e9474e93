import HTTPCaching
import HTTPTypes
@_spi(Benchmarks) import TieredCache

/// The strong entity tag that the proxy gives to a generation of a body.
enum GenerationTag {
    /// Makes the tag of a response.
    ///
    /// Equal for all responses of one generation, in this process and later ones. Derived from the
    /// origin's strong tag; without one, from the random number of the body on disk; for a body
    /// that is not on disk, from `Last-Modified`.
    ///
    /// - Parameters:
    ///   - fields: the fields of the response.
    ///   - target: the URI of the request.
    ///   - finalURL: the URL that answered after redirects; its query is ignored, since it may
    ///     rotate.
    ///   - generation: the number of the body on disk.
    /// - Returns: the tag; nil where nothing distinguishes one body from another.
    static func of(
        fields: HTTPFields,
        target: TargetURI,
        finalURL: String? = nil,
        generation: UInt64?
    ) -> EntityTag? {
        // The origin's tag is unique among the representations of one resource only.
        let resource =
            finalURL.map { "\(target.string)\n\($0.prefix { $0 != "?" })" }
            ?? target.string
        if let tag = fields[.eTag].flatMap({ EntityTag($0) }), !tag.isWeak {
            // The letters keep tags of different sources apart.
            return EntityTag(opaque: "o" + digest("\(resource)\n\(tag.opaque)"))
        }
        if let generation {
            return EntityTag(opaque: "g" + ProxyAddress.hexadecimal(generation))
        }
        return fields[.lastModified].flatMap {
            EntityTag(opaque: "m" + digest("\(resource)\n\($0)"))
        }
    }

    /// 32 hexadecimal digits.
    static func digest(_ text: String) -> String {
        digest(of: Array(text.utf8))
    }

    /// 32 hexadecimal digits.
    static func digest(of bytes: [UInt8]) -> String {
        bytes.withUnsafeBytes { MD5.digest(of: $0).hexadecimal }
    }
}
