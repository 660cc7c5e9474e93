import CLibcrypto

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// One fetched MD5 of libcrypto and a digest context for each thread that used it.
///
/// Fetching searches the providers under a lock and a new context allocates; both together cost
/// several times what digesting a key does, so the one happens once per process and the other once
/// per thread.
final class LibcryptoMD5: Sendable {
    // Unsafe only to the compiler: an `EVP_MD` is immutable after its fetch and shared by design.
    // It is never freed; the instances live as long as the process.
    nonisolated(unsafe) private let algorithm: OpaquePointer
    private let contextKey: pthread_key_t

    private init?(algorithm: OpaquePointer?) {
        guard let algorithm else { return nil }
        var key = pthread_key_t()
        // The destructor frees a thread's context when the thread ends.
        guard pthread_key_create(&key, freeContext) == 0 else { return nil }
        self.algorithm = algorithm
        contextKey = key
    }

    /// MD5 from the library context of the process.
    ///
    /// `fips=no` asks for an implementation without approval where the process prefers approved
    /// ones; it finds nothing when only the FIPS provider is loaded.
    static func fetchShared() -> LibcryptoMD5? {
        keepingErrorQueueClean {
            LibcryptoMD5(algorithm: EVP_MD_fetch(nil, "MD5", "fips=no"))
        }
    }

    /// MD5 from the default provider, loaded into a library context of our own, which the
    /// process's configuration does not reach.
    static func fetchFromOwnContext() -> LibcryptoMD5? {
        keepingErrorQueueClean {
            guard let library = OSSL_LIB_CTX_new() else { return nil }
            guard OSSL_PROVIDER_load(library, "default") != nil,
                let found = LibcryptoMD5(algorithm: EVP_MD_fetch(library, "MD5", nil))
            else {
                OSSL_LIB_CTX_free(library)
                return nil
            }
            return found
        }
    }

    /// The digest, or `nil` if libcrypto could not allocate a context.
    func digest(of bytes: UnsafeRawBufferPointer) -> MD5Digest? {
        guard let context = threadContext() else { return nil }
        var halves: (UInt64, UInt64) = (0, 0)
        // Without a type the context is reset and keeps its state's memory.
        guard EVP_DigestInit_ex2(context, nil, nil) == 1,
            EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1,
            withUnsafeMutableBytes(of: &halves, { finish(context, into: $0) })
        else { return nil }
        return MD5Digest(high: UInt64(bigEndian: halves.0), low: UInt64(bigEndian: halves.1))
    }

    private func finish(
        _ context: OpaquePointer,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> Bool {
        EVP_DigestFinal_ex(context, buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), nil)
            == 1
    }

    private func threadContext() -> OpaquePointer? {
        if let context = pthread_getspecific(contextKey) {
            return OpaquePointer(context)
        }
        guard let context = EVP_MD_CTX_new() else { return nil }
        guard EVP_DigestInit_ex2(context, algorithm, nil) == 1,
            pthread_setspecific(contextKey, UnsafeRawPointer(context)) == 0
        else {
            EVP_MD_CTX_free(context)
            return nil
        }
        return context
    }

    /// Drops the errors that a fetch which found nothing leaves in the thread's queue, where the
    /// application would later take them for its own.
    private static func keepingErrorQueueClean<Result>(_ body: () -> Result) -> Result {
        ERR_set_mark()
        defer { ERR_pop_to_mark() }
        return body()
    }
}

#if canImport(Darwin)
private func freeContext(_ context: UnsafeMutableRawPointer) {
    EVP_MD_CTX_free(OpaquePointer(context))
}
#else
private func freeContext(_ context: UnsafeMutableRawPointer?) {
    EVP_MD_CTX_free(OpaquePointer(context))
}
#endif
