import CLibcrypto
import HTTPCaching

/// MD5 (RFC 1321) by libcrypto, used only to turn keys of any length into file names of one length.
@_spi(Benchmarks) public enum MD5 {
    static let shared = DigestAlgorithm.md5.flatMap { ThreadDigest($0) }

    /// The digest of `bytes`.
    ///
    /// Allocates nothing after a thread's first call. May be called from any thread. Traps where
    /// libcrypto has no MD5: no cache is made there.
    public static func digest(of bytes: UnsafeRawBufferPointer) -> MD5Digest {
        guard let shared else { preconditionFailure(unavailable("MD5").message) }
        return shared.digest(of: bytes)
    }

    /// Refuses a machine whose libcrypto lacks what a cache needs.
    ///
    /// - Parameters:
    ///   - md5: the digest that names the files.
    ///   - sha256: the digest that stands for request fields that must not be stored.
    /// - Throws: ``CacheError/Code/localStorage``.
    static func requireAlgorithms(
        md5: ThreadDigest? = shared,
        sha256: DigestAlgorithm? = .sha256
    ) throws(CacheError) {
        guard md5 != nil else { throw unavailable("MD5") }
        guard sha256 != nil else { throw unavailable("SHA-256") }
    }

    private static func unavailable(_ name: String) -> CacheError {
        CacheError(
            .localStorage,
            "libcrypto offers no \(name), also not in its default provider; install OpenSSL with it"
        )
    }
}
