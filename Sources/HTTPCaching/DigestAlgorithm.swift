import CLibcrypto

/// An algorithm of libcrypto, fetched once for the process: MD5 and SHA-256 have one implementation
/// here.
///
/// A fetch searches the providers under a lock, which costs several times what digesting a key
/// does.
package struct DigestAlgorithm: Sendable {
    /// The `EVP_MD`.
    ///
    /// Unsafe only to the compiler: immutable after its fetch, shared by design, and never freed.
    nonisolated(unsafe) package let type: OpaquePointer

    /// MD5, also where the process prefers approved implementations; nil where libcrypto has none.
    package static let md5 = fetch("MD5", properties: "fips=no")
    /// SHA-256, in FIPS mode the approved one; nil where libcrypto has none.
    package static let sha256 = fetch("SHA256")

    /// Searches the library context of the process, and then one that its configuration does not
    /// reach.
    ///
    /// - Parameters:
    ///   - name: the name by which providers know the algorithm.
    ///   - properties: what the implementation must be, in the words of libcrypto.
    /// - Returns: nil where neither context has it.
    package static func fetch(_ name: String, properties: String? = nil) -> DigestAlgorithm? {
        keepingErrorQueueClean {
            EVP_MD_fetch(nil, name, properties).map { DigestAlgorithm(type: $0) }
                ?? fetchFromOwnContext(name)
        }
    }

    /// The algorithm of the default provider in a context of our own: what a machine in FIPS mode
    /// needs, which loads another provider for the process.
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

    /// Drops the errors that a fetch which found nothing leaves in the thread's queue, where the
    /// application would later take them for its own.
    private static func keepingErrorQueueClean<Result>(_ body: () -> Result) -> Result {
        ERR_set_mark()
        defer { ERR_pop_to_mark() }
        return body()
    }
}
