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

    /// The object of a handle; nil for NULL and a released handle.
    @inline(__always)
    func find(_ handle: OpaquePointer?) -> Object? {
        guard let handle else { return nil }
        return state.withLock { $0.objects[UInt(bitPattern: handle)]?.object }
    }

    /// - Returns: the handle; nil for one that is unknown.
    func retain(_ handle: OpaquePointer?) -> OpaquePointer? {
        guard let handle else { return nil }
        let isKnown = state.withLock { state in
            state.objects[UInt(bitPattern: handle)]?.count += 1
            return state.objects[UInt(bitPattern: handle)] != nil
        }
        return isKnown ? handle : nil
    }

    /// - Returns: the object if this was the last release of a handle that is known.
    func release(_ handle: OpaquePointer?) -> Object? {
        guard let handle else { return nil }
        return state.withLock { state in
            let number = UInt(bitPattern: handle)
            guard let entry = state.objects[number] else { return nil }
            state.objects[number]?.count -= 1
            return entry.count == 1 ? state.objects.removeValue(forKey: number)?.object : nil
        }
    }
}

/// The caches that programs hold; each open gives a handle of its own.
///
/// This table and the other ones are nil before the first open, which makes them, and in a fork:
/// another thread of the parent may have held their locks, or have been making them.
var caches: Handles<OpenedCache>? { tc_is_in_use() ? Tables.caches : nil }
/// The streams.
var streams: Handles<HostedStream>? { tc_is_in_use() ? Tables.streams : nil }
/// The jobs.
var jobs: Handles<HostedJob>? { tc_is_in_use() ? Tables.jobs : nil }
/// The clients of agents.
var agents: Handles<HostedAgent>? { tc_is_in_use() ? Tables.agents : nil }

private enum Tables {
    static let caches = Handles<OpenedCache>(kind: 0)
    static let streams = Handles<HostedStream>(kind: 1)
    static let jobs = Handles<HostedJob>(kind: 2)
    static let agents = Handles<HostedAgent>(kind: 3)
}
