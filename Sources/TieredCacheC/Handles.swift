import CLinuxCalls
import TieredCache

/// The handles of one kind that are in use: a number for each, which a program holds as a pointer.
///
/// No handle is the address of anything, and none is used twice: one that was released is found to
/// be unknown, whatever thread still has it.
final class Handles<Object: AnyObject & Sendable>: Sendable {
    private struct State {
        var objects: [UInt: (object: Object, count: Int)] = [:]
        var last: UInt
    }

    private let state: Guarded<State>

    /// Creates an empty table.
    ///
    /// - Parameter kind: tells handles of this kind from others; below 16.
    init(kind: UInt) {
        state = Guarded(State(last: kind))
    }

    /// A new handle.
    func insert(_ object: Object) -> OpaquePointer? {
        let number = state.withLock { state in
            // On 32 bits numbers come again after 268 million handles.
            repeat { state.last &+= 16 } while state.last < 16 || state.objects[state.last] != nil
            state.objects[state.last] = (object, 1)
            return state.last
        }
        return OpaquePointer(bitPattern: number)
    }

    /// The object of a handle; nil for NULL, a released handle, and in a fork.
    @inline(__always)
    func find(_ handle: OpaquePointer?) -> Object? {
        // First: another thread of the parent may have held the lock.
        guard !tc_has_forked(), let handle else { return nil }
        return state.withLock { $0.objects[UInt(bitPattern: handle)]?.object }
    }

    /// - Returns: the handle; nil for one that is unknown.
    func retain(_ handle: OpaquePointer?) -> OpaquePointer? {
        guard !tc_has_forked(), let handle else { return nil }
        let isKnown = state.withLock { state in
            state.objects[UInt(bitPattern: handle)]?.count += 1
            return state.objects[UInt(bitPattern: handle)] != nil
        }
        return isKnown ? handle : nil
    }

    /// - Returns: the object if this was the last release of a handle that is known.
    func release(_ handle: OpaquePointer?) -> Object? {
        guard !tc_has_forked(), let handle else { return nil }
        return state.withLock { state in
            let number = UInt(bitPattern: handle)
            guard let entry = state.objects[number] else { return nil }
            state.objects[number]?.count -= 1
            return entry.count == 1 ? state.objects.removeValue(forKey: number)?.object : nil
        }
    }
}

/// The caches that programs hold; each open gives a handle of its own.
let caches = Handles<OpenedCache>(kind: 0)
/// The streams.
let streams = Handles<HostedStream>(kind: 1)
/// The jobs.
let jobs = Handles<HostedJob>(kind: 2)
