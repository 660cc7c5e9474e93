/// MD5 (RFC 1321), used only to turn keys of any length into file names of one length.
///
/// libcrypto does the work. Where it cannot (a machine in FIPS mode has no MD5 in its default
/// provider), a private library context with the default provider does, and where that is missing
/// too, our own few lines: the names of the files must never depend on the machine's policy.
@_spi(Benchmarks)
public enum MD5 {
    /// What computes digests.
    public enum Backend: String, CaseIterable, Sendable {
        /// libcrypto, as the process configured it.
        case libcrypto
        /// libcrypto's default provider, loaded into a library context of our own.
        case privateProvider
        /// Our own implementation.
        case portable
    }

    /// The backend that ``digest(of:)`` uses in this process: the first that works.
    public static var backend: Backend { selected.backend }

    /// The digest of `bytes`.
    ///
    /// Allocates nothing after a thread's first call. May be called from any thread.
    public static func digest(of bytes: UnsafeRawBufferPointer) -> MD5Digest {
        // A failure after a successful fetch means that libcrypto ran out of memory; the portable
        // implementation needs none and gives the same digest.
        selected.libcrypto?.digest(of: bytes) ?? portableDigest(of: bytes)
    }

    /// The digest of `bytes` by one backend, for tests and comparisons; `nil` where this machine's
    /// libcrypto does not offer it.
    public static func digest(
        of bytes: UnsafeRawBufferPointer,
        using backend: Backend
    ) -> MD5Digest? {
        switch backend {
        case .libcrypto: shared?.digest(of: bytes)
        case .privateProvider: ownContext?.digest(of: bytes)
        case .portable: portableDigest(of: bytes)
        }
    }

    /// A backend and, unless it is the portable one, the libcrypto that serves it.
    struct Selection: Sendable {
        let backend: Backend
        let libcrypto: LibcryptoMD5?
    }

    /// The first backend of the chain that yields something.
    ///
    /// - Parameters:
    ///   - shared: fetches MD5 from the process's library context.
    ///   - own: fetches MD5 from a library context of our own; not called if `shared` succeeded.
    /// - Returns: the selection; the portable backend if both fail.
    static func select(
        shared: () -> LibcryptoMD5?,
        own: () -> LibcryptoMD5?
    ) -> Selection {
        if let libcrypto = shared() {
            return Selection(backend: .libcrypto, libcrypto: libcrypto)
        }
        if let libcrypto = own() {
            return Selection(backend: .privateProvider, libcrypto: libcrypto)
        }
        return Selection(backend: .portable, libcrypto: nil)
    }

    private static let shared = LibcryptoMD5.fetchShared()
    private static let ownContext = LibcryptoMD5.fetchFromOwnContext()
    private static let selected = select(shared: { shared }, own: { ownContext })
}
