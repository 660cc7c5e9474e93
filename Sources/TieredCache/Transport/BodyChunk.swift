public import FoundationEssentials

/// Some bytes of a body, in the buffer of the transport: no copy is made.
public struct BodyChunk: Sendable {
    private let storage: any BodyChunkStorage

    /// Wraps a transport's buffer.
    public init(_ storage: some BodyChunkStorage) {
        self.storage = storage
    }

    /// The number of bytes.
    public var count: Int { storage.count }

    /// The maximum length in bytes of a chunk that short ones are copied to.
    static let joinedLength = 64 << 10

    /// Whether keeping a chunk of this length costs more memory than its bytes, so that it should
    /// be copied together with others if many wait.
    static func isShort(_ count: Int) -> Bool { count < 4 << 10 }

    /// The bytes, without the rest of the buffer.
    var copy: Data { withUnsafeBytes { Data($0) } }

    /// Calls `body` with the bytes; the pointer is valid only during the call.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try storage.withBytes(body)
    }
}

/// A buffer with accessible bytes; a transport conforms its own buffer type.
public protocol BodyChunkStorage: Sendable {
    /// The number of bytes.
    var count: Int { get }
    /// Calls `body` with the bytes; the pointer is valid only during the call.
    func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result
}

extension [UInt8]: BodyChunkStorage {
    /// Calls `body` with the array's contiguous storage.
    public func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBufferPointer { (bytes: UnsafeBufferPointer<UInt8>) throws(Failure) in
            try body(UnsafeRawBufferPointer(bytes))
        }
    }
}

extension Data: BodyChunkStorage {
    /// Calls `body` with the contiguous bytes.
    public func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let result = withUnsafeBytes { bytes -> Swift.Result<Result, Failure> in
            do throws(Failure) {
                return .success(try body(bytes))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
