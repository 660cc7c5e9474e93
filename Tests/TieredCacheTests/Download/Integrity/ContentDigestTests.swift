import HTTPTypes
import Testing

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct ContentDigestTests {
    private let name = HTTPField.Name("Repr-Digest") ?? .contentLocation
    private let older = HTTPField.Name("Content-MD5") ?? .contentLocation
    // RFC 9530, appendix D: {"hello": "world"} and a newline.
    private let sha256 = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="
    private let hello = Array("{\"hello\": \"world\"}\n".utf8)

    private func digest(_ algorithm: ContentDigest.Algorithm, _ bytes: [UInt8]) -> ContentDigest? {
        guard let context = DigestContext(algorithm) else { return nil }
        for piece in [bytes[..<(bytes.count / 2)], bytes[(bytes.count / 2)...]] {
            let isTaken = Array(piece).withUnsafeBytes { context.update($0) }
            #expect(isTaken)
        }
        return context.finish()
    }

    @Test("Repr-Digest in the RFC's example is the digest of its bytes")
    func reprDigest() throws {
        let fields: HTTPFields = [name: "sha-512=:AAAA:, sha-256=:\(sha256):;q=1"]
        let digest = try #require(self.digest(.sha256, hello))
        #expect(ContentDigest.promised(in: fields) == [digest])
        #expect(ContentDigest.promised(in: fields, isPart: true) == [digest])
    }

    @Test("Content-MD5 speaks of the body that it comes with")
    func contentMD5() throws {
        let digest = try #require(self.digest(.md5, Array("Check Integrity!".utf8)))
        let fields: HTTPFields = [older: "Q2hlY2sgSW50ZWdyaXR5IQ=="]
        #expect(ContentDigest.promised(in: fields).first?.bytes == Array("Check Integrity!".utf8))
        #expect(ContentDigest.promised(in: fields, isPart: true).isEmpty)
        #expect(digest.description.hasPrefix("md5="))
        #expect(
            ContentDigest(.md5, hexadecimal: String(digest.description.dropFirst(4))) == digest
        )
    }

    @Test("Coded, malformed or unknown: nothing is promised")
    func nothing() {
        let bad = [
            "sha-256=:\(sha256):, x=", "SHA-256=:\(sha256):", "sha-256=\(sha256)", "",
            "sha-256", "sha-256=abc", "sha-256=:!!:", "sha-256=:AAAA:", "=::", "x=:AA==:",
        ]
        for value in bad { #expect(ContentDigest.promised(in: [name: value]).isEmpty) }
        let coded: HTTPFields = [name: "sha-256=:\(sha256):", .contentEncoding: "gzip"]
        #expect(ContentDigest.promised(in: coded).isEmpty)
        #expect(ContentDigest(.sha256, bytes: [1]) == nil)
        #expect(ContentDigest(.md5, hexadecimal: "zz") == nil)
    }
}
