/// Proof that the calling thread holds the lock of an entry's name.
///
/// Functions that need the lock have it as a parameter, so that a call without it does not compile.
/// ``DiskStore/withLock(of:_:)`` alone makes it. It cannot be kept; it collects what is to be done
/// after the lock was given back.
struct NameLock: ~Copyable {
    let name: EntryName
    /// What left memory meanwhile: to say when it was used takes the lock of its own name.
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
