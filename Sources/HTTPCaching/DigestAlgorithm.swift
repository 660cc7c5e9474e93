import CLibcrypto

/// A digest algorithm of libcrypto, fetched once per process; the only implementation of MD5 and,
/// but for short texts without it (``PortableSHA256``), of SHA-256 in this package.
///
/// A fetch searches the providers under a lock, which costs several times as much as digesting a
/// key.
package struct DigestAlgorithm: Sendable {
    /// The `EVP_MD`.
    ///
    /// Safe: the object is immutable after its fetch, may be shared between threads, and is never
    /// freed.
    nonisolated(unsafe) package let type: OpaquePointer

    /// MD5, also in FIPS mode; nil if libcrypto has none.
    package static let md5 = fetch("MD5", properties: "fips=no")
    /// SHA-256, in FIPS mode the approved implementation; nil if libcrypto has none.
    package static let sha256 = fetch("SHA256")

    /// Searches the library context of the process, then a new context that the process's
    /// configuration does not affect.
    ///
    /// - Parameters:
    ///   - name: the provider's name of the algorithm.
    ///   - properties: the required properties, in libcrypto's syntax.
    /// - Returns: the algorithm; nil if neither context has it.
    package static func fetch(_ name: String, properties: String? = nil) -> DigestAlgorithm? {
        keepingErrorQueueClean {
            EVP_MD_fetch(nil, name, properties).map { DigestAlgorithm(type: $0) }
                ?? fetchFromOwnContext(name)
        }
    }

    /// The algorithm of the default provider in a separate library context, for machines in FIPS
    /// mode, where the process has another provider.
    package static func fetchFromOwnContext(_ name: String) -> DigestAlgorithm? {
        guard let library = OSSL_LIB_CTX_new() else { return nil }
        guard OSSL_PROVIDER_load(library, "default") != nil,
            let found = EVP_MD_fetch(library, name, nil)
        else {
            OSSL_LIB_CTX_free(library)
            return nil
        }
        return DigestAlgorithm(type: found)
    }

    /// Removes the errors of failed fetches from the thread's error queue, where the application
    /// would mistake them for its own.
    private static func keepingErrorQueueClean<Result>(_ body: () -> Result) -> Result {
        ERR_set_mark()
        defer { ERR_pop_to_mark() }
        return body()
    }
}
