import HTTPCaching

/// Why the bytes of a response are not stored.
enum NotStored: Error, Sendable {
    /// The rules of HTTP, the request, or the application forbid it.
    case forbidden(Storability.Reason)
    /// The disk cannot be used, is full, or belongs to another process.
    case disk(CacheError)
    /// The disk belongs to another process, which stores them.
    case byOwner(CacheError)

    /// The reason in one word, as the detail of `Cache-Status`.
    var detail: String {
        switch self {
        case .forbidden(let reason): reason.rawValue
        case .disk(let error): error.code == .notOwner ? "guest" : "disk"
        case .byOwner: "guest"
        }
    }

    /// Whether only the disk prevents storing.
    var isOfDisk: Bool {
        if case .forbidden = self { false } else { true }
    }

    /// Whether another process stores them in this one's place.
    var isByOwner: Bool {
        if case .byOwner = self { true } else { false }
    }

    /// The error of a request that needs the bytes stored.
    func error(for request: CacheRequest) -> CacheError {
        switch self {
        case .disk(let error), .byOwner(let error): error
        case .forbidden(let reason):
            CacheError(
                .notStorable,
                "\(request.target.redacted) may not be stored: \(reason.rawValue)"
            )
        }
    }
}
