/// Proof that the calling thread holds the lock of an entry's name.
///
/// Functions that need the lock take it as a parameter, so that a call without it does not compile.
/// ``DiskStore/withLock(of:_:)`` alone makes it. It cannot be kept; it collects the work for after
/// the release of the lock.
struct NameLock: ~Copyable {
    let name: EntryName
    /// The entries that left memory meanwhile: to write their last use takes the locks of their
    /// names.
    var leaving = ReleasedEntries()

    fileprivate init(name: EntryName) {
        self.name = name
    }
}

extension DiskStore {
    /// Runs `body` while nothing else creates, replaces or removes files of the name, or writes its
    /// record.
    func withLock<Result, Failure: Error>(
        of name: EntryName,
        _ body: (inout NameLock) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var lock = NameLock(name: name)
        defer { retire(lock.leaving) }
        return try names.withLock(of: name.digest.low) { () throws(Failure) in
            try body(&lock)
        }
    }
}
