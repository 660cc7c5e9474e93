/// The one order in which locks that are held over blocking calls are taken.
///
/// Code that holds a lock may take one that stands later here, and any ``Guarded`` value; never one
/// that stands earlier, never a second one of the same kind, and none of these while it holds a
/// `Guarded` value. A debug build traps where code does otherwise, see ``LockChecker``.
package enum LockOrder: Int, CaseIterable, Sendable {
    /// The files of the directory's history.
    case history
    /// The record of a download job, by the job's number.
    case jobs
    /// One write of blocks to the body of an entry, by its number.
    case writes
    /// Loading the index.
    case loading
    /// Loading one of the 256 directories.
    case shards
    /// Evicting.
    case evictions
    /// The files of an entry, by its name.
    case names
    /// The claim in LOCK, and the snapshot of the index.
    case claims
}
