import HTTPCaching
package import SystemPackage
package import TieredCache

/// A disk in memory: it counts allocated bytes, can be full, can fail any call, and can lose power
/// between any two calls.
///
/// Allocates pages of 4096 bytes; holes are free. Unsynced changes may be lost in a power cut: see
/// ``afterCrash(_:)``. Safe to use from any thread.
package final class InMemoryFileSystem: FileSystem {
    let state: Guarded<State>

    /// Creates an empty disk.
    ///
    /// - Parameters:
    ///   - capacity: the most bytes allocated to files.
    ///   - time: the clock of modification dates.
    ///   - remembersUnsynced: keeps everything that was overwritten, renamed and removed since the
    ///     last sync, so that ``afterCrash(_:)`` can restore it; takes memory.
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

    /// The bytes allocated to files, including open files without a name.
    package var allocatedBytes: Int64 { state.withLock { $0.allocatedBytes } }

    /// The highest value of ``allocatedBytes`` after any call.
    package var peakAllocatedBytes: Int64 { state.withLock { $0.peakAllocatedBytes } }

    /// Resets ``peakAllocatedBytes`` to the present value.
    package func forgetPeak() {
        state.withLock { $0.forgetPeak() }
    }

    /// The number of open files and directories.
    package var openCount: Int { state.withLock { $0.handles.count } }

    /// The allocated bytes of all files, by path.
    package var files: [String: Int64] { state.withLock { $0.allFiles() } }

    /// Makes calls fail.
    ///
    /// - Parameters:
    ///   - call: the call that fails; `nil` for all calls.
    ///   - errno: the error.
    ///   - times: the number of failures.
    ///   - skipping: the number of calls that succeed before the first failure.
    package func fail(
        _ call: FileSystemError.Call?,
        with errno: Errno,
        times: Int = 1,
        skipping: Int = 0
    ) {
        let failure = Failure(call: call, errno: errno, times: times, skipping: skipping)
        state.withLock { $0.failures.append(failure) }
    }

    /// Removes all scheduled failures.
    package func heal() {
        state.withLock { $0.failures = [] }
    }

    /// Changes the capacity.
    package func setCapacity(_ capacity: Int64) {
        state.withLock { $0.capacity = capacity }
    }

    /// Lets `count` more changing calls succeed; then every call fails with `EIO`, as if the
    /// process had died.
    package func crash(afterChanges count: Int) {
        state.withLock { $0.changesLeft = count }
    }

    /// The number of calls that have changed the disk.
    package var changeCount: Int { state.withLock { $0.changeCount } }

    /// From now on, a status shows the allocation of the last call of ``settleAllocation()``, and
    /// 512 bytes for a newer file, as ZFS does for some seconds.
    package func delayAllocation() {
        state.withLock { state in
            state.isAllocationDelayed = true
            state.settle()
        }
    }

    /// Makes statuses show the present allocation.
    package func settleAllocation() {
        state.withLock { $0.settle() }
    }

    /// Makes statuses of open files show `bytes` more than allocated, as XFS does, which
    /// preallocates.
    ///
    /// The additional bytes do not count for ``allocatedBytes`` or the capacity.
    package func allocateAhead(_ bytes: Int64) {
        state.withLock { $0.aheadBytes = bytes }
    }

    /// Changes a file without a recorded call.
    ///
    /// - Parameters:
    ///   - path: the path from the root of this disk, with a leading slash.
    ///   - change: modifies the content.
    /// - Returns: whether there is such a file.
    @discardableResult
    package func tamper(_ path: String, with change: (inout [UInt8]) -> Void) -> Bool {
        guard var content = content(of: path) else { return false }
        change(&content)
        state.withLock { state in
            guard case .file(let number) = state.find(path) else { return }
            state.change(number) { $0 = Pages(content) }
        }
        return true
    }

    /// Sets a file's length without a recorded call; added bytes are a hole.
    ///
    /// - Parameters:
    ///   - path: as in ``tamper(_:with:)``.
    ///   - length: the new length in bytes.
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

    /// Creates a file, and its directories, without a recorded call.
    package func put(_ content: [UInt8], at path: String) {
        state.withLock { $0.put(content, at: path) }
    }

    /// Removes a file's name without a recorded call.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    package func delete(_ path: String) -> Bool {
        state.withLock { $0.delete(path) }
    }

    /// Removes a directory and its content without a recorded call.
    ///
    /// Open handles of the directory see it empty, and can create nothing in it.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    package func deleteDirectory(_ path: String) -> Bool {
        state.withLock { $0.deleteDirectory(path) }
    }
}

/// One recorded call.
package struct FileSystemCall: Hashable, Sendable {
    /// The call.
    package var call: FileSystemError.Call
    /// The path or name that the call was given; empty for a call on an open file.
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
