import HTTPCaching
import HTTPTypes
@_spi(Benchmarks) import TieredCache

/// The proxy's strong entity tag of a generation.
enum GenerationTag {
    /// Makes the tag of a response.
    ///
    /// The same for every answer of one generation, from its first byte on, in this process and in
    /// later ones: where the origin has a strong tag, it is made of that; else of the random number
    /// that the body has on disk; where it is not on disk, of `Last-Modified`.
    ///
    /// - Parameters:
    ///   - fields: the response's fields.
    ///   - target: what was asked for.
    ///   - finalURL: what answered, where redirects led to something else; its query may rotate.
    ///   - generation: the number of the body on disk.
    /// - Returns: nil where nothing tells one body from another.
    static func of(
        fields: HTTPFields,
        target: TargetURI,
        finalURL: String? = nil,
        generation: UInt64?
    ) -> EntityTag? {
        // The origin's tag tells apart the representations of one resource.
        let resource =
            finalURL.map { "\(target.string)\n\($0.prefix { $0 != "?" })" }
            ?? target.string
        if let tag = fields[.eTag].flatMap({ EntityTag($0) }), !tag.isWeak {
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
