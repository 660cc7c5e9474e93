#if os(Linux) && DEBUG && HTTPClient
import CAllocatedObjects
import Synchronization

@testable import TieredCache

/// What the threads of a walk have done while they were counted: the locks that they took, and the
/// objects that they made.
///
/// Locks are told by ``LockChecker``, objects by a function in front of `swift_allocObject`. Where
/// they are told, nothing may be allocated and no lock be taken: they are listed, and named later.
enum WalkEvents {
    private static let isCounting = Atomic<Bool>(false)
    private static let locks = WalkEventList()
    private static let objects = WalkEventList()

    private static let didTakeLock: LockChecker.Observer = { file, line in
        guard isCounting.load(ordering: .relaxed), WalkThreads.current != nil else { return }
        locks.append((UInt(bitPattern: file), line))
    }

    private static let didMakeObject: tc_object_observer = { metadata in
        guard isCounting.load(ordering: .relaxed), WalkThreads.current != nil else { return }
        objects.append((UInt(bitPattern: metadata), 0))
    }

    /// Runs `body`, within which ``count(_:)`` may be called.
    static func whileTold<Value>(_ body: () throws -> Value) throws -> Value {
        // All that the functions use is made here, and not at the first event.
        isCounting.store(false, ordering: .relaxed)
        locks.removeAll()
        objects.removeAll()
        LockChecker.observe(by: didTakeLock)
        tc_observe_objects(didMakeObject)
        defer {
            tc_observe_objects(nil)
            LockChecker.observe(by: nil)
        }
        return try body()
    }

    /// Runs `body`, and counts what the threads of walks do meanwhile.
    ///
    /// - Returns: the locks, by the place where their values are made, and the objects, by type.
    static func count(
        _ body: () throws -> Void
    ) throws -> (locks: [String: Int], objects: [String: Int]) {
        locks.removeAll()
        objects.removeAll()
        isCounting.store(true, ordering: .relaxed)
        defer { isCounting.store(false, ordering: .relaxed) }
        try body()
        isCounting.store(false, ordering: .relaxed)
        return try (counts(of: locks, name: nameOfLock), counts(of: objects, name: nameOfObject))
    }

    // MARK: Names

    private static func counts(
        of list: WalkEventList,
        name: ((UInt, UInt)) -> String?
    ) throws -> [String: Int] {
        guard !list.isCut else { throw WalkFailure("a walk does more than can be listed") }
        return list.all.compactMap(name).reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }

    /// Nil for a lock of a test or a test double.
    private static func nameOfLock(_ event: (UInt, UInt)) -> String? {
        guard let file = UnsafePointer<CChar>(bitPattern: event.0) else {
            return LockOrder(rawValue: Int(event.1)).map { "KeyedLock \($0)" }
        }
        let place = String(cString: file)
        return isOurs(place, separator: "/") ? "\(place):\(event.1)" : nil
    }

    /// Nil for what is no object of a class of ours: those of others, boxes, contexts of closures.
    private static func nameOfObject(_ event: (UInt, UInt)) -> String? {
        guard let metadata = UnsafeRawPointer(bitPattern: event.0) else { return nil }
        // The first word is the kind, or for a class the address of its own metadata, or 0
        // (ABI/TypeMetadata.rst).
        let kind = metadata.load(as: UInt.self)
        guard kind == 0 || kind > 0x7FF else { return nil }
        let name = String(reflecting: unsafeBitCast(metadata, to: Any.Type.self))
        guard isOurs(name, separator: ".") else { return nil }
        // Of a private type the name has an address.
        return name.replacing(/\(unknown context at \$[0-9a-f]+\)\./, with: "")
    }

    private static func isOurs(_ name: String, separator: String) -> Bool {
        ["TieredCache", "HTTPCaching", "HTTPTransport"].contains { name.hasPrefix($0 + separator) }
    }
}

/// Pairs of words, appended where nothing may be allocated.
private final class WalkEventList: @unchecked Sendable {
    // Unchecked: only the thread of a walk whose turn it is touches it.
    private static let capacity = 1 << 19
    private let events = UnsafeMutablePointer<(UInt, UInt)>.allocate(capacity: capacity)
    private var count = 0

    deinit { events.deallocate() }

    var isCut: Bool { count > Self.capacity }

    var all: [(UInt, UInt)] {
        Array(UnsafeBufferPointer(start: events, count: min(count, Self.capacity)))
    }

    func append(_ event: (UInt, UInt)) {
        if count < Self.capacity { events[count] = event }
        count += 1
    }

    func removeAll() { count = 0 }
}

/// Why a walk could not be counted.
struct WalkFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
#endif
