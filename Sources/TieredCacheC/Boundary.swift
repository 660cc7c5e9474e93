import CLinuxCalls
import CTieredCache
import TieredCache

// What functions do is said in the header. This is what they share: statuses, text, structs and
// calls that block.

/// A status as functions return it.
struct Status: Error {
    let number: CInt
    /// The origin's status, for ``TIERED_E_HTTP``.
    var http: Int?

    // Made at each use: one that is stored takes a lock for its first use.
    static var invalid: Status { Status(TIERED_E_INVALID) }
    static var unknown: Status { Status(TIERED_E_UNKNOWN) }
    static var notFound: Status { Status(TIERED_E_NOT_FOUND) }
    static var notCached: Status { Status(TIERED_E_NOT_CACHED) }
    static var excluded: Status { Status(TIERED_E_EXCLUDED) }
    static var forked: Status { Status(TIERED_E_FORKED) }

    init(_ status: tiered_status) {
        number = CInt(status.rawValue)
    }

    init(_ error: CacheError) {
        number = CInt((Self.statuses[error.code] ?? TIERED_E_NETWORK).rawValue)
        http = error.status
    }

    private static let statuses: [CacheError.Code: tiered_status] = [
        .invalidArgument: TIERED_E_INVALID,
        .invalidURL: TIERED_E_INVALID,
        .rangeNotSatisfiable: TIERED_E_INVALID,
        .notCached: TIERED_E_NOT_CACHED,
        .originFailed: TIERED_E_NETWORK,
        .httpStatus: TIERED_E_HTTP,
        .timedOut: TIERED_E_TIMEOUT,
        .representationChanged: TIERED_E_CHANGED,
        .integrityFailed: TIERED_E_INTEGRITY,
        .cancelled: TIERED_E_CANCELLED,
        .interrupted: TIERED_E_INTERRUPTED,
        .notOwner: TIERED_E_NOT_OWNER,
        .localStorage: TIERED_E_STORAGE,
        .formatTooNew: TIERED_E_STORAGE,
        .notStorable: TIERED_E_STORAGE,
        .shutDown: TIERED_E_SHUT_DOWN,
    ]
}

/// The result of a function that gives a number or a status.
func number(_ body: () throws(Status) -> Int64) -> Int64 {
    do throws(Status) {
        return try body()
    } catch {
        return Int64(error.number)
    }
}

/// The result of a function that gives a status alone.
func status(_ body: () throws(Status) -> Void) -> CInt {
    do throws(Status) {
        try body()
        return CInt(TIERED_OK.rawValue)
    } catch {
        return error.number
    }
}

/// The object of a handle.
///
/// - Throws: `TIERED_E_FORKED` in a fork, else `TIERED_E_INVALID`.
func object<Object>(
    _ handles: Handles<Object>?,
    _ handle: OpaquePointer?
) throws(Status) -> Object {
    guard let object = handles?.find(handle) else {
        throw tc_has_forked() ? .forked : .invalid
    }
    return object
}

/// Writes a new handle where a program wants it; NULL is written first, and stays after an error.
///
/// - Throws: `TIERED_E_FORKED` in a fork.
func give<Object>(
    to place: UnsafeMutablePointer<OpaquePointer?>?,
    of handles: Handles<Object>?,
    _ make: () throws(Status) -> Object
) throws(Status) {
    guard let handles else { throw .forked }
    guard let place else { throw .invalid }
    place.pointee = nil
    place.pointee = handles.insert(try make())
}

/// The cache of a handle; throws as ``object(_:_:)`` does.
func hostedCache(_ handle: OpaquePointer?) throws(Status) -> HostedCache {
    try object(caches, handle).hosted
}

/// What a call of the engine gives, its error as a status.
func translating<Value>(_ body: () throws(CacheError) -> Value) throws(Status) -> Value {
    do throws(CacheError) {
        return try body()
    } catch {
        throw Status(error)
    }
}

/// Waits for a call of the engine that never waits for the network.
func waiting<Value: Sendable>(
    _ body: @escaping @Sendable () async throws(CacheError) -> Value
) throws(Status) -> Value {
    let gate = BlockingGate<Value>()
    Task(priority: .high) {
        do throws(CacheError) {
            gate.open(with: .success(try await body()))
        } catch {
            gate.open(with: .failure(error))
        }
    }
    return try translating { () throws(CacheError) in try gate.wait() }
}

// MARK: Text

/// The text of a program.
///
/// - Throws: `TIERED_E_INVALID` for NULL and for what is no UTF-8.
func text(_ pointer: UnsafePointer<CChar>?) throws(Status) -> String {
    guard let pointer, let text = String(validatingCString: pointer) else { throw .invalid }
    return text
}

/// The same; nil for NULL.
func optionalText(_ pointer: UnsafePointer<CChar>?) throws(Status) -> String? {
    try pointer.map { (pointer) throws(Status) in try text(pointer) }
}

/// The texts of a list that ends with NULL; none for NULL.
func texts(_ list: UnsafePointer<UnsafePointer<CChar>?>?) throws(Status) -> [String] {
    guard var place = list else { return [] }
    var texts: [String] = []
    while let pointer = place.pointee {
        texts.append(try text(pointer))
        place += 1
    }
    return texts
}

/// Writes text with a 0 at its end, as far as it fits.
///
/// - Returns: the number of bytes of the whole, without the 0.
@discardableResult
func write(
    _ text: String,
    to buffer: UnsafeMutablePointer<CChar>?,
    count: Int
) throws(Status) -> Int64 {
    guard count >= 0, buffer != nil || count == 0 else { throw .invalid }
    var text = text
    text.withUTF8 { bytes in
        guard let buffer, count > 0 else { return }
        let fitting = bytes.prefix(count - 1)
        UnsafeMutableRawBufferPointer(start: buffer, count: count).copyBytes(from: fitting)
        buffer[fitting.count] = 0
    }
    return Int64(text.utf8.count)
}

// MARK: Structs

/// The largest struct that a program may pass; a larger `size` was not set.
private let maximumSize = 4096

/// Whether a struct can have this size in bytes; another one may end within a pointer.
private func isSize(_ size: Int) -> Bool {
    size >= MemoryLayout<Int>.size && size <= maximumSize && size % MemoryLayout<Int>.alignment == 0
}

/// A struct of the program, also of one that was compiled with another version.
///
/// - Parameters:
///   - pointer: the struct; its first field is its size in bytes.
///   - empty: the struct with all fields 0.
/// - Returns: the struct; fields that the program does not know are 0.
/// - Throws: `TIERED_E_INVALID` for NULL, for a size that makes no sense, and for fields that this
///   version does not know and that are not 0.
func structure<Value: BitwiseCopyable>(
    _ pointer: UnsafePointer<Value>?,
    empty: Value
) throws(Status) -> Value {
    guard let pointer else { throw .invalid }
    let raw = UnsafeRawPointer(pointer)
    let size = raw.loadUnaligned(as: Int.self)
    guard isSize(size) else { throw .invalid }
    let own = MemoryLayout<Value>.size
    let rest = UnsafeRawBufferPointer(start: raw, count: size).dropFirst(own)
    guard rest.allSatisfy({ $0 == 0 }) else { throw .invalid }
    var value = empty
    withUnsafeMutableBytes(of: &value) { bytes in
        bytes.copyMemory(from: UnsafeRawBufferPointer(start: raw, count: min(size, own)))
    }
    return value
}

/// Fills a struct of the program, as much of it as the program knows; what this version does not
/// know becomes 0.
func fill<Value: BitwiseCopyable>(
    _ pointer: UnsafeMutablePointer<Value>?,
    with value: Value
) throws(Status) {
    guard let pointer else { throw .invalid }
    let raw = UnsafeMutableRawPointer(pointer)
    let size = raw.loadUnaligned(as: Int.self)
    guard isSize(size) else { throw .invalid }
    let bytes = UnsafeMutableRawBufferPointer(start: raw, count: size)
    let first = MemoryLayout<Int>.size
    UnsafeMutableRawBufferPointer(rebasing: bytes.dropFirst(first)).initializeMemory(
        as: UInt8.self,
        repeating: 0
    )
    withUnsafeBytes(of: value) { source in
        let end = min(size, source.count)
        UnsafeMutableRawBufferPointer(rebasing: bytes[first..<end])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[first..<end]))
    }
}
