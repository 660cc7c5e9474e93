import CLibcrypto
import HTTPCaching

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Digests of 16 bytes with one context for each thread: making one costs more than digesting a
/// key.
final class ThreadDigest: Sendable {
    private let algorithm: DigestAlgorithm
    private let contextKey: pthread_key_t

    /// - Returns: nil where the process has no key left for what belongs to a thread.
    init?(_ algorithm: DigestAlgorithm) {
        var key = pthread_key_t()
        // The destructor frees a thread's context when the thread ends.
        guard pthread_key_create(&key, freeContext) == 0 else { return nil }
        self.algorithm = algorithm
        contextKey = key
    }

    /// The digest of `bytes`; after a thread's first call nothing in here can fail.
    func digest(of bytes: UnsafeRawBufferPointer) -> MD5Digest {
        let context = threadContext()
        var halves: (UInt64, UInt64) = (0, 0)
        // Without a type the context is reset and keeps its state's memory.
        guard EVP_DigestInit_ex2(context, nil, nil) == 1,
            EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1,
            withUnsafeMutableBytes(of: &halves, { finish(context, into: $0) })
        else { preconditionFailure("libcrypto failed to digest a key") }
        return MD5Digest(high: UInt64(bigEndian: halves.0), low: UInt64(bigEndian: halves.1))
    }

    private func finish(
        _ context: OpaquePointer,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> Bool {
        EVP_DigestFinal_ex(context, buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), nil)
            == 1
    }

    private func threadContext() -> OpaquePointer {
        if let context = pthread_getspecific(contextKey) { return OpaquePointer(context) }
        // As with every other allocation, a process without memory ends here.
        guard let context = EVP_MD_CTX_new(),
            EVP_DigestInit_ex2(context, algorithm.type, nil) == 1,
            pthread_setspecific(contextKey, UnsafeRawPointer(context)) == 0
        else { preconditionFailure("there is no memory for a digest context") }
        return context
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
