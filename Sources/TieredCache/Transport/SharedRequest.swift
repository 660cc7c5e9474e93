import FoundationEssentials
package import HTTPCaching
package import HTTPTypes

/// What the owner of a cache directory has to know of a guest's request, beside the request, to
/// store the response as the guest would.
///
/// It is a GET over the owner's socket: the target is `/2/` and the URL, the fields are those for
/// the origin with ``key``, ``priority``, ``reloads`` and the names of the secret ones. The owner
/// sends 102 at once, and follows redirects. A response with the field ``failure`` is none of the
/// origin; the others have ``location``, and ``stored`` where the owner stores them.
/// docs/disk-format.md has an example.
package struct SharedRequest: Hashable, Sendable {
    /// Precedes the URL; the number changes with the meaning of what follows.
    package static let prefix = "/2/"
    /// The field with ``key``, in Base64.
    package static let keyField = HTTPField.Name.own("TieredCache-Key")
    /// The field with ``priority``.
    package static let priorityField = HTTPField.Name.own("TieredCache-Priority")
    /// The field that is there where ``reloads`` is true.
    package static let reloadField = HTTPField.Name.own("TieredCache-Reload")
    /// The field with the names of those that only the first origin may receive.
    package static let secretField = HTTPField.Name.own("TieredCache-Secret")
    /// The field of a response that the owner makes because it has none of the origin.
    package static let failure = HTTPField.Name.own("TieredCache-Failure")
    /// The field with the URL that answered after redirects.
    package static let location = HTTPField.Name.own("TieredCache-Location")
    /// The field of a response that the owner stores, or has stored: with the generation of the
    /// entry, 0 where it is in memory.
    package static let stored = HTTPField.Name.own("TieredCache-Stored")
    /// How long an owner may take to say that it is there, which takes it no look at a disk, and
    /// how long a request waits for a slot of it.
    package static let patience = Duration.seconds(1)

    /// The requested URL, which redirects do not change.
    package let target: TargetURI
    /// The application's name for the entry; nil for the URL.
    package var key: String?
    /// The fields that only the first origin may receive.
    package var secretFields: Set<HTTPField.Name>
    /// How urgent it is.
    package var priority: RequestPriority
    /// Whether what is stored must not answer.
    package var reloads: Bool
    /// How long the owner may take to say that it is there; not sent.
    package var patience: Duration
    /// What has become of an owner that the download has asked, and asks no more; not sent.
    package var failure: OwnerFailure?

    /// Creates one.
    package init(
        target: TargetURI,
        key: String? = nil,
        secretFields: Set<HTTPField.Name> = [],
        priority: RequestPriority,
        reloads: Bool = false,
        patience: Duration = Self.patience
    ) {
        self.target = target
        self.key = key
        self.secretFields = secretFields
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
        let secret = Set(request.head.headerFields.map(\.name)).intersection(secretFields)
        question.head.headerFields[Self.secretField] =
            secret.isEmpty
            ? nil : secret.map(\.rawName).sorted().joined(separator: ", ")
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
