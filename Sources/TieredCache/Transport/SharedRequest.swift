import FoundationEssentials
package import HTTPTypes

/// What the owner of a cache directory has to know of a guest's request, beside the request, to
/// store the response as the guest would.
///
/// It is a GET over the owner's socket: the target is `/1/` and the URL, the fields are those for
/// the origin with ``key``, ``priority`` and ``reloads``. The owner sends 102 at once. A response
/// with the field ``failure`` is none of the origin; one with ``stored`` is stored by the owner.
/// docs/disk-format.md has an example.
package struct SharedRequest: Hashable, Sendable {
    /// Precedes the URL; the number changes with the meaning of what follows.
    package static let prefix = "/1/"
    /// The field with ``key``, in Base64.
    package static let keyField = HTTPField.Name.own("TieredCache-Key")
    /// The field with ``priority``.
    package static let priorityField = HTTPField.Name.own("TieredCache-Priority")
    /// The field that is there where ``reloads`` is true.
    package static let reloadField = HTTPField.Name.own("TieredCache-Reload")
    /// The field of a response that the owner makes because it has none of the origin.
    package static let failure = HTTPField.Name.own("TieredCache-Failure")
    /// The field of a response that the owner stores, or has stored.
    package static let stored = HTTPField.Name.own("TieredCache-Stored")
    /// How long an owner may take to say that it is there, which takes it no look at a disk, and
    /// how long a request waits for a slot of it.
    package static let patience = Duration.seconds(1)

    /// The application's name for the entry; nil for the URL.
    package var key: String?
    /// How urgent it is.
    package var priority: RequestPriority
    /// Whether what is stored must not answer.
    package var reloads: Bool
    /// How long the owner may take to say that it is there; not sent.
    package var patience: Duration
    /// Whether the download has met an owner that was silent or broke off, and asks it no more.
    package var avoidsOwner = false

    /// Creates one.
    package init(
        key: String? = nil,
        priority: RequestPriority,
        reloads: Bool = false,
        patience: Duration = Self.patience
    ) {
        self.key = key
        self.priority = priority
        self.reloads = reloads
        self.patience = patience
    }

    /// The request to the owner for a request to an origin; nil if it cannot be put to it.
    func question(_ request: TransportRequest, socket: OwnerSocket) -> TransportRequest? {
        guard request.head.method == .get, let scheme = request.head.scheme,
            let authority = request.head.authority, let path = request.head.path
        else { return nil }
        var question = request
        question.socket = socket
        question.head.path = "\(Self.prefix)\(scheme)://\(authority)\(path)"
        question.head.headerFields[Self.keyField] = key.map {
            Data($0.utf8).base64EncodedString()
        }
        question.head.headerFields[Self.priorityField] = String(priority.rawValue)
        question.head.headerFields[Self.reloadField] = reloads ? "1" : nil
        return question
    }

    /// The name that a field's value stands for; nil if it is none.
    package static func name(of value: String) -> String? {
        Data(base64Encoded: value).flatMap { String(validating: $0, as: UTF8.self) }
    }
}

extension HTTPField.Name {
    fileprivate static func own(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else {
            preconditionFailure("a name of ours is a token")
        }
        return name
    }
}
