package import TieredCache

/// The identifier of a download in the form of aria2's: sixteen hexadecimal digits.
package typealias GID = DownloadID

/// What outlives the process of one download.
///
/// The bytes are an entry of the cache, and so is what is needed to ask for the rest of them.
package struct DownloadRecord: Hashable, Sendable {
    /// The states that outlive the process; one that runs is waiting there.
    package enum State: String, Codable, Sendable {
        case waiting  // → paused, complete, error, removed
        case paused  // → waiting, removed
        case complete, error, removed

        /// Whether it is one of `tellStopped`.
        package var isStopped: Bool { ![.waiting, .paused].contains(self) }
    }

    /// The file that is being made of a body that has come, so that a crash makes no second one.
    struct Delivery: Codable, Hashable, Sendable {
        var path: String
        var device: UInt64
        var file: UInt64
    }

    /// What a rank may be: there is room behind it for more than will ever come.
    static let ranks = 0...Int64.max >> 1

    package let gid: GID
    /// The URLs of the file, without userinfo; the first are used first.
    package var uris: [String]
    /// How many of them have failed.
    var failed = 0
    package var options: DownloadOptions
    package var state = State.waiting
    /// The order: of those that wait, and behind one another of those that have stopped.
    var rank: Int64
    package var total: Int64?
    package var completed: Int64 = 0
    /// The path of the file, or where it will be; empty while that is not known.
    package var path = ""
    package var errorCode: Int?
    package var errorMessage: String?
    /// Whether secrets were given that the record does not have.
    var lacksSecrets = false
    /// The session that it belongs to; nil for none.
    package var session: String?
    /// When it stopped, in seconds since 1970.
    var stopped: Int64?
    /// How often the URL that is used now was tried in vain.
    var tries: Int64 = 0
    var delivery: Delivery?

    init(gid: GID, uris: [String], options: DownloadOptions, rank: Int64) {
        self.gid = gid
        self.uris = uris
        self.options = options
        self.rank = rank
    }

    /// How often it may be tried yet, of `max-tries`, where 0 is no limit.
    func triesLeft(of limit: Int64) -> Int64 { limit == 0 ? .max : max(0, limit - tries) }

    /// The URL that is used now, or was last; nil for a record without any.
    var uri: String? { uris.isEmpty ? nil : uris[min(failed, uris.count - 1)] }
}

extension DownloadRecord: Codable {
    private enum CodingKeys: String, CodingKey {
        case gid, uris, failed, options, state, rank, total, completed, path, errorCode
        case errorMessage, lacksSecrets, session, stopped, tries, delivery
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        guard let gid = GID(try values.decode(String.self, forKey: .gid)) else {
            throw DecodingError.dataCorruptedError(
                forKey: .gid,
                in: values,
                debugDescription: "not a GID"
            )
        }
        self.init(
            gid: gid,
            uris: try values.decode([String].self, forKey: .uris),
            options: DownloadOptions(try values.decode([String: String].self, forKey: .options)),
            rank: Self.clamped(try values.decode(Int64.self, forKey: .rank))
        )
        failed = Int(
            clamping: Self.clamped(try values.decodeIfPresent(Int64.self, forKey: .failed))
        )
        state = try values.decode(State.self, forKey: .state)
        total = try values.decodeIfPresent(Int64.self, forKey: .total)
        completed = try values.decodeIfPresent(Int64.self, forKey: .completed) ?? 0
        path = try values.decodeIfPresent(String.self, forKey: .path) ?? ""
        errorCode = try values.decodeIfPresent(Int.self, forKey: .errorCode)
        errorMessage = try values.decodeIfPresent(String.self, forKey: .errorMessage)
        lacksSecrets = try values.decodeIfPresent(Bool.self, forKey: .lacksSecrets) ?? false
        session = try values.decodeIfPresent(String.self, forKey: .session)
        stopped = try values.decodeIfPresent(Int64.self, forKey: .stopped)
        tries = Self.clamped(try values.decodeIfPresent(Int64.self, forKey: .tries))
        delivery = try values.decodeIfPresent(Delivery.self, forKey: .delivery)
    }

    /// A number that can be added to, whatever was in the file.
    private static func clamped(_ number: Int64?) -> Int64 {
        min(max(ranks.lowerBound, number ?? 0), ranks.upperBound)
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode("\(gid)", forKey: .gid)
        try values.encode(uris, forKey: .uris)
        if failed > 0 { try values.encode(failed, forKey: .failed) }
        try values.encode(options.values, forKey: .options)
        try values.encode(state, forKey: .state)
        try values.encode(rank, forKey: .rank)
        try values.encodeIfPresent(total, forKey: .total)
        if completed > 0 { try values.encode(completed, forKey: .completed) }
        if !path.isEmpty { try values.encode(path, forKey: .path) }
        try values.encodeIfPresent(errorCode, forKey: .errorCode)
        try values.encodeIfPresent(errorMessage, forKey: .errorMessage)
        if lacksSecrets { try values.encode(true, forKey: .lacksSecrets) }
        try values.encodeIfPresent(session, forKey: .session)
        try values.encodeIfPresent(stopped, forKey: .stopped)
        if tries > 0 { try values.encode(tries, forKey: .tries) }
        try values.encodeIfPresent(delivery, forKey: .delivery)
    }
}
