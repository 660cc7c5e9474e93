import SystemPackage

// Others may remove the directory under its owner, or LOCK alone, as cleaners of old files do.
// Its descriptors stand for files without a name then: what is written is never found, and the next
// process is an owner too. So before each write, or where `DiskTier` gives the store for it, an
// owner looks whether the names are still what it opened, which costs no disk; if not, it writes
// nothing more, and `DiskTier` opens the directory anew.
extension DiskStore {
    /// Whether the directory, or its lock, was seen to be gone.
    var isLost: Bool { lock.isLost }

    /// Finds out whether the directory is still the one that was opened.
    func look() {
        guard access.canWrite, !lock.isLost else { return }
        if !ownNames.areThere(in: root, fileSystem) { lock.lose() }
    }

    /// Notes that a directory of the cache is missing.
    func didMissDirectory() { lock.lose() }

    var lostDirectory: CacheError {
        CacheError(
            .localStorage,
            "the cache directory \(options.root), or its LOCK, was removed from outside; "
                + "it is opened again within ten seconds"
        )
    }
}

/// The files that an owner has open, with the names by which other processes find them.
struct OwnNames: Sendable {
    private var identities: [(name: String, identity: UInt64)] = []

    /// Notes the identity of a file or directory.
    mutating func add(
        _ name: String,
        file: OpenFile,
        fileSystem: any FileSystem
    ) throws(FileSystemError) {
        identities.append((name, try fileSystem.status(of: file).identity))
    }

    /// Whether the names still belong to the same files; an error of the disk counts as no change.
    func areThere(in root: OpenFile, _ fileSystem: any FileSystem) -> Bool {
        for (name, identity) in identities {
            do throws(FileSystemError) {
                let found = try fileSystem.status(of: name, in: root)
                if found.identity != identity { return false }
            } catch {
                if error.isAbsence { return false }
            }
        }
        return true
    }
}
