import FoundationEssentials
import HTTPCaching
import HTTPTypes

/// What of a download job outlives the process: its request, its state, its books.
///
/// The bytes and their validator are the entry's; a record without entry starts from nothing.
struct JobRecord: Hashable, Sendable {
    let id: DownloadID
    /// When it was submitted.
    var created: WallTime
    var url: String
    var explicitKey: String?
    var method: String
    /// The request's fields without those that are secrets.
    var fields: HTTPFields
    var body: [UInt8]?
    var isPinned = false
    /// Whether fields were left out of the record, so that the origin may refuse the next run.
    var lacksCredentials = false
    var priority: RequestPriority = .normal
    /// Whether it waits for another network while the present one charges for bytes.
    var avoidsExpensiveNetworks = false
    var state: DownloadState = .queued
    /// Attempts that failed, over all runs.
    var attempts = 0
    /// Body bytes that came from the origin, over all runs.
    var bytesFromOrigin: Int64 = 0
    /// What the whole body must digest to.
    var digests: [ContentDigest] = []

    /// Takes down a request, but for what is secret in it.
    ///
    /// - Parameters:
    ///   - id: the job's.
    ///   - request: what is fetched.
    ///   - created: when it was submitted.
    ///   - secretFields: fields that are sent as long as the process lives, and never written down.
    init(
        id: DownloadID,
        request: CacheRequest,
        created: WallTime,
        secretFields: Set<HTTPField.Name> = MediaCache.Configuration.commonSecretFields
    ) {
        self.id = id
        self.created = created
        url = request.target.string
        explicitKey = request.explicitKey
        method = request.method.rawValue
        fields = request.fields
        body = request.body.map(Array.init)
        isPinned = request.isPinned
        priority = request.priority
        digests = request.expectedDigests
        avoidsExpensiveNetworks = request.options.contains(.avoidsExpensiveNetworks)
        for name in secretFields where fields[name] != nil {
            fields[name] = nil
            lacksCredentials = true
        }
    }

    init(id: DownloadID, created: WallTime, url: String, method: String) {
        self.id = id
        self.created = created
        self.url = url
        self.method = method
        fields = [:]
    }

    /// The request again, without the fields that were never written down.
    ///
    /// - Throws: `.invalidURL` for a record that somebody made by hand.
    func request() throws(CacheError) -> CacheRequest {
        guard let method = HTTPRequest.Method(method) else {
            throw CacheError(.invalidArgument, "'\(method)' is not a method")
        }
        var request = try CacheRequest(url, key: explicitKey, method: method)
        request.fields = fields
        request.body = body.map { Data($0) }
        request.options.set(.pinned, to: isPinned)
        request.priority = priority
        request.expectedDigests = digests
        request.options.set(.avoidsExpensiveNetworks, to: avoidsExpensiveNetworks)
        return request
    }
}
