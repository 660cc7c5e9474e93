import SystemPackage

// Others may remove the directory under its owner, or LOCK alone, as cleaners of old files do.
// Its descriptors stand for files without a name then: what is written is never found, and the next
// process is an owner too. So before each write an owner looks whether the names are still what it
// opened, which costs no disk; if not, it writes nothing more, and `DiskTier` opens the directory
// anew.
extension DiskStore {
    /// Whether the directory, or its lock, was seen to be gone.
    var isLost: Bool { lock.isLost }

    /// Finds out whether the directory is still the one that was opened.
    func look() {
        guard access.canWrite, !lock.isLost else { return }
        if !ownNames.areThere(in: root, fileSystem) { lock.lose() }
    }

    /// A directory of ours is not there any more.
    func didMissDirectory() { lock.lose() }

    var lostDirectory: CacheError {
        CacheError(
            .localStorage,
            "the cache directory \(options.root), or its LOCK, was removed from outside; "
                + "it is opened again within ten seconds"
        )
    }
}

/// What an owner has open by names by which every process finds it.
struct OwnNames: Sendable {
    private var identities: [(name: String, identity: UInt64)] = []

    /// Notes what a file or directory is.
    mutating func add(
        _ name: String,
        _ file: OpenFile,
        _ fileSystem: any FileSystem
    ) throws(FileSystemError) {
        identities.append((name, try fileSystem.status(of: file).identity))
    }

    /// Whether the names still stand for the same; a disk that cannot tell has changed nothing.
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
