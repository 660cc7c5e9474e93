/// Some bytes of a body, in whatever buffer the transport received them: no copy is made.
public struct BodyChunk: Sendable {
    private let storage: any BodyChunkStorage

    /// Wraps a transport's buffer.
    public init(_ storage: some BodyChunkStorage) {
        self.storage = storage
    }

    /// The number of bytes.
    public var count: Int { storage.count }

    /// How long a chunk becomes to which short ones are joined.
    static let joinedLength = 64 << 10

    /// Whether what keeps a chunk of this length takes more memory than its bytes, so that it is
    /// better copied to others where many wait.
    static func isShort(_ count: Int) -> Bool { count < 4 << 10 }

    /// Lends the bytes; the pointer is valid only during the call.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try storage.withBytes(body)
    }
}

/// A buffer that can lease its bytes; a transport makes its own buffer type one.
public protocol BodyChunkStorage: Sendable {
    /// The number of bytes.
    var count: Int { get }
    /// Lends the bytes for the duration of the call.
    func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result
}

extension [UInt8]: BodyChunkStorage {
    /// Lends the array's contiguous storage.
    public func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBufferPointer { (bytes: UnsafeBufferPointer<UInt8>) throws(Failure) in
            try body(UnsafeRawBufferPointer(bytes))
        }
    }
}
