import HTTPCaching
package import SystemPackage
package import TieredCache

/// A disk in memory: counts what files are allocated, can be full, can fail any call, and can lose
/// power between any two.
///
/// Allocation is in pages of 4096 bytes, holes cost nothing. What was not synced may be gone after
/// a power cut: see ``afterCrash(_:)``. Any thread may call.
package final class InMemoryFileSystem: FileSystem {
    let state: Guarded<State>

    /// Creates an empty disk.
    ///
    /// - Parameters:
    ///   - capacity: how many bytes files may be allocated in all.
    ///   - time: gives the modification dates.
    ///   - remembersUnsynced: keeps what was overwritten, renamed and removed since it was synced,
    ///     so that ``afterCrash(_:)`` can bring it back; takes memory.
    package init(
        capacity: Int64 = 1 << 40,
        time: any TimeSource = SystemTimeSource(),
        remembersUnsynced: Bool = false
    ) {
        state = Guarded(
            State(capacity: capacity, time: time, remembersUnsynced: remembersUnsynced)
        )
    }

    init(state: State) {
        self.state = Guarded(state)
    }

    /// The calls made so far, in order.
    package var calls: [FileSystemCall] { state.withLock { $0.calls } }

    /// How many bytes files are allocated, those included that have no name and are open.
    package var allocatedBytes: Int64 { state.withLock { $0.allocatedBytes } }

    /// The most that ``allocatedBytes`` has ever been, between any two calls.
    package var peakAllocatedBytes: Int64 { state.withLock { $0.peakAllocatedBytes } }

    /// Begins ``peakAllocatedBytes`` anew.
    package func forgetPeak() {
        state.withLock { $0.forgetPeak() }
    }

    /// How many files and directories are open.
    package var openCount: Int { state.withLock { $0.handles.count } }

    /// The paths of all files, in order, with what they are allocated.
    package var files: [String: Int64] { state.withLock { $0.allFiles() } }

    /// Makes calls fail.
    ///
    /// - Parameters:
    ///   - call: which; `nil` is every one.
    ///   - errno: how.
    ///   - times: how often, before it works again.
    ///   - skipping: how many of them work first.
    package func fail(
        _ call: FileSystemError.Call?,
        with errno: Errno,
        times: Int = 1,
        skipping: Int = 0
    ) {
        let failure = Failure(call: call, errno: errno, times: times, skipping: skipping)
        state.withLock { $0.failures.append(failure) }
    }

    /// Ends all failures asked for.
    package func heal() {
        state.withLock { $0.failures = [] }
    }

    /// Changes how many bytes files may be allocated.
    package func setCapacity(_ capacity: Int64) {
        state.withLock { $0.capacity = capacity }
    }

    /// Lets so many more calls through that change the disk; then every call fails with `EIO`, as
    /// if the process had died.
    package func crash(afterChanges count: Int) {
        state.withLock { $0.changesLeft = count }
    }

    /// How many calls have changed the disk.
    package var changeCount: Int { state.withLock { $0.changeCount } }

    /// From now on a status tells what a file was allocated when ``settleAllocation()`` was called
    /// last, 512 bytes if it is newer: as ZFS does for some seconds.
    package func delayAllocation() {
        state.withLock { state in
            state.isAllocationDelayed = true
            state.settle()
        }
    }

    /// Files show what they are allocated by now.
    package func settleAllocation() {
        state.withLock { $0.settle() }
    }

    /// A status tells so many bytes more of a file that is open, as XFS does, which allocates
    /// ahead.
    ///
    /// They count nowhere else.
    package func allocateAhead(_ bytes: Int64) {
        state.withLock { $0.aheadBytes = bytes }
    }

    /// Changes a file behind everybody's back.
    ///
    /// - Parameters:
    ///   - path: from the root of this disk, with a leading slash.
    ///   - change: gets the content and changes it; `nil` removes the file.
    /// - Returns: whether there is such a file.
    @discardableResult
    package func tamper(_ path: String, _ change: (inout [UInt8]) -> Void) -> Bool {
        guard var content = content(of: path) else { return false }
        change(&content)
        state.withLock { state in
            guard case .file(let number) = state.find(path) else { return }
            state.change(number) { $0 = Pages(content) }
        }
        return true
    }

    /// Sets a file's length behind everybody's back; what is added is a hole.
    ///
    /// - Parameters:
    ///   - path: as in ``tamper(_:_:)``.
    ///   - length: what is left of it.
    /// - Returns: whether there is such a file.
    @discardableResult
    package func cut(_ path: String, to length: Int64) -> Bool {
        state.withLock { state in
            guard case .file(let number) = state.find(path) else { return false }
            state.change(number) { $0.truncate(to: length) }
            return true
        }
    }

    /// A file's bytes.
    package func content(of path: String) -> [UInt8]? {
        state.withLock { state in
            guard case .file(let number) = state.find(path) else { return nil }
            return state.files[number]?.content.bytes
        }
    }

    /// Puts a file there, and the directories that it needs.
    package func put(_ content: [UInt8], at path: String) {
        state.withLock { $0.put(content, at: path) }
    }

    /// Removes a file's name behind everybody's back.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    package func delete(_ path: String) -> Bool {
        state.withLock { $0.delete(path) }
    }

    /// Removes a directory and all below it behind everybody's back.
    ///
    /// What has it open finds it empty, and can make nothing in it.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    package func deleteDirectory(_ path: String) -> Bool {
        state.withLock { $0.deleteDirectory(path) }
    }
}

/// One recorded call.
package struct FileSystemCall: Hashable, Sendable {
    /// Which.
    package var call: FileSystemError.Call
    /// The path it was about, from the root of the disk; empty for a file without a name.
    package var path: String
    /// Whether it changes the disk.
    package var isChange: Bool
}

struct Failure: Sendable {
    var call: FileSystemError.Call?
    var errno: Errno
    var times: Int
    var skipping: Int
}
