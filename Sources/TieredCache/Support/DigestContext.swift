import CLibcrypto
import HTTPCaching

/// A digest of bytes that arrive in pieces; for one thread at a time.
struct DigestContext: ~Copyable, @unchecked Sendable {
    // Unchecked: a context is bound to no thread, and the value has one owner.
    private let context: OpaquePointer
    private let algorithm: ContentDigest.Algorithm

    /// - Returns: nil if libcrypto does not offer the algorithm or is out of memory.
    init?(_ algorithm: ContentDigest.Algorithm) {
        let fetched: DigestAlgorithm? = algorithm == .md5 ? .md5 : .sha256
        guard let fetched, let context = EVP_MD_CTX_new() else { return nil }
        guard EVP_DigestInit_ex2(context, fetched.type, nil) == 1 else {
            EVP_MD_CTX_free(context)
            return nil
        }
        self.context = context
        self.algorithm = algorithm
    }

    deinit {
        EVP_MD_CTX_free(context)
    }

    /// - Returns: whether libcrypto accepted the bytes.
    func update(_ bytes: UnsafeRawBufferPointer) -> Bool {
        EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1
    }

    /// The digest of all bytes so far; nil if libcrypto failed.
    ///
    /// Call it once.
    func finish() -> ContentDigest? {
        var bytes = [UInt8](repeating: 0, count: algorithm.length)
        let isDone = bytes.withUnsafeMutableBufferPointer {
            EVP_DigestFinal_ex(context, $0.baseAddress, nil) == 1
        }
        return isDone ? ContentDigest(algorithm, bytes: bytes) : nil
    }
}
