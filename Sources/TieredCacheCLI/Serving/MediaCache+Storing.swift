import SystemPackage
import TieredCache

extension MediaCache {
    /// Why what is fetched is not stored; nil if it is, be it through the owner of the directory.
    func storingError(in directory: FilePath?) -> CacheError? {
        guard let storageError else { return nil }
        guard storageError.code == .notOwner, let directory else { return storageError }
        return OwnerSocket.isThere(in: directory) ? nil : storageError
    }
}
