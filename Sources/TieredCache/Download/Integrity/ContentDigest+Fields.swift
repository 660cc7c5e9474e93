import FoundationEssentials
import HTTPCaching
public import HTTPTypes

extension ContentDigest {
    /// The digests that an origin sends of the representation: `Repr-Digest` (RFC 9530 §3) and the
    /// older `Content-MD5` (RFC 1864).
    ///
    /// Empty for a coded representation, since the digests are of the coded bytes. A malformed
    /// field is ignored (RFC 9651 §4.2), as are members of other algorithms.
    ///
    /// - Parameters:
    ///   - fields: the fields of the response.
    ///   - isPart: whether it is a 206: `Content-MD5` then covers the part alone.
    /// - Returns: the digests, at most one of each algorithm and field.
    public static func promised(in fields: HTTPFields, isPart: Bool = false) -> [ContentDigest] {
        guard ContentCoding(in: fields) == .identity else { return [] }
        var result: [ContentDigest] = []
        for member in fields[.reprDigest].flatMap({ StructuredDictionary($0) })?.members ?? [] {
            guard let algorithm = Algorithm(rawValue: member.key),
                case .bytes(let text) = member.value,
                let digest = ContentDigest(algorithm, base64: text)
            else { continue }
            result.append(digest)
        }
        guard !isPart, let text = fields[.contentMD5],
            let digest = ContentDigest(.md5, base64: text)
        else { return result }
        if !result.contains(digest) { result.append(digest) }
        return result
    }

    /// The fields with digests of the bytes as sent.
    static let promisingFields = [HTTPField.Name.reprDigest, .contentMD5]

    private init?(_ algorithm: Algorithm, base64 text: String) {
        guard let data = Data(base64Encoded: text) else { return nil }
        self.init(algorithm, bytes: Array(data))
    }
}

extension [ContentDigest] {
    /// Whether others of the same algorithms are not the same.
    func contradicts(_ others: [ContentDigest]) -> Bool {
        contains { digest in
            others.contains { $0.algorithm == digest.algorithm && $0 != digest }
        }
    }
}

extension HTTPField.Name {
    // Valid tokens: the fallbacks are never used.
    fileprivate static let reprDigest = HTTPField.Name("Repr-Digest") ?? .contentLocation
    fileprivate static let contentMD5 = HTTPField.Name("Content-MD5") ?? .contentLocation
}
