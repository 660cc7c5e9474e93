import HTTPCaching

/// Another process that owns a cache directory, as LOCK told when this one opened it.
package struct DirectoryOwner: Sendable {
    /// Its number; nil if it has not written it down.
    package var process: Int32?
    /// When it last wrote LOCK, at the latest when it became the owner.
    var signedAt: WallTime

    /// What messages call it.
    var name: String { process.map { "process \($0)" } ?? "another process" }
}
