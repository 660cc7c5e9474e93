import HTTPCaching

/// Why the bytes of a response are not stored.
enum NotStored: Error, Sendable {
    /// The rules of HTTP, the request, or the application forbid it.
    case forbidden(Storability.Reason)
    /// The disk cannot be used, is full, or belongs to another process.
    case disk(CacheError)

    /// The reason in one word, as the detail of `Cache-Status`.
    var detail: String {
        switch self {
        case .forbidden(let reason): reason.rawValue
        case .disk(let error): error.code == .notOwner ? "guest" : "disk"
        }
    }

    /// Whether only the disk prevents storing.
    var isOfDisk: Bool {
        if case .disk = self { true } else { false }
    }

    /// The error of a request that needs the bytes stored.
    func error(for request: CacheRequest) -> CacheError {
        switch self {
        case .disk(let error): error
        case .forbidden(let reason):
            CacheError(
                .notStorable,
                "\(request.target.redacted) may not be stored: \(reason.rawValue)"
            )
        }
    }
}
