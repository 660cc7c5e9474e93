import FoundationEssentials
import HTTPCaching
public import HTTPTypes

/// A digest of a whole representation.
public struct ContentDigest: Hashable, Sendable, CustomStringConvertible {
    /// The supported algorithms; the names are those of RFC 9530 §5.
    public enum Algorithm: String, Hashable, Sendable, CaseIterable {
        /// MD5: detects accidents, not attacks.
        case md5
        /// SHA-256.
        case sha256 = "sha-256"

        /// The length of a digest in bytes.
        public var length: Int { self == .md5 ? 16 : 32 }
    }

    /// The algorithm.
    public let algorithm: Algorithm
    /// The digest.
    public let bytes: [UInt8]

    /// Creates a digest; nil if the number of bytes does not fit the algorithm.
    public init?(_ algorithm: Algorithm, bytes: [UInt8]) {
        guard bytes.count == algorithm.length else { return nil }
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// Creates a digest from hexadecimal digits of either case; nil for anything else.
    public init?(_ algorithm: Algorithm, hexadecimal text: String) {
        let digits = text.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count == 2 * algorithm.length, !digits.contains(nil) else { return nil }
        let values = digits.compactMap { $0 }
        self.init(
            algorithm,
            bytes: stride(from: 0, to: values.count, by: 2).map {
                UInt8(values[$0] << 4 | values[$0 + 1])
            }
        )
    }

    /// `sha-256=` and hexadecimal digits.
    public var description: String {
        let digits = bytes.map { byte in
            let text = String(byte, radix: 16)
            return text.utf8.count < 2 ? "0" + text : text
        }
        return "\(algorithm.rawValue)=" + digits.joined()
    }

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
        let coding = fields[.contentEncoding]?.lowercased() ?? "identity"
        guard coding == "identity" else { return [] }
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

extension HTTPField.Name {
    // Valid tokens: the fallbacks are never used.
    fileprivate static let reprDigest = HTTPField.Name("Repr-Digest") ?? .contentLocation
    fileprivate static let contentMD5 = HTTPField.Name("Content-MD5") ?? .contentLocation
}
