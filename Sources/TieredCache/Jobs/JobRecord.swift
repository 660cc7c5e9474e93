import FoundationEssentials
import HTTPCaching
import HTTPTypes

/// The part of a download job that survives the process: its request, its state, its counters.
///
/// The entry stores the bytes and their validator; a job without an entry starts at byte 0.
struct JobRecord: Hashable, Sendable {
    let id: DownloadID
    /// The time of submission.
    var created: WallTime
    var url: String
    var explicitKey: String?
    var method: String
    /// The fields of the request, without secret ones and those of rules.
    var fields: HTTPFields
    /// The names of those that only the first origin gets.
    var firstOriginFields: Set<HTTPField.Name> = []
    var body: [UInt8]?
    var isPinned = false
    /// Whether secret fields are missing from the record, so that the origin may refuse the next
    /// run.
    var lacksCredentials = false
    /// Whether fields of rules are missing from the record.
    var lacksRuleFields = false
    var priority: RequestPriority = .normal
    /// Whether the job waits while the network has costs per byte.
    var avoidsExpensiveNetworks = false
    var state: DownloadState = .queued
    /// The number of failed attempts, over all runs.
    var attempts = 0
    /// The number of body bytes received from the origin, over all runs.
    var bytesFromOrigin: Int64 = 0
    /// The expected digests of the whole body.
    var digests: [ContentDigest] = []

    /// Creates the record of a request, without its secrets and what rules have given it.
    ///
    /// - Parameters:
    ///   - id: the identifier of the job.
    ///   - request: the request to fetch.
    ///   - created: the time of submission.
    ///   - secretFields: fields that are sent as long as the process lives, and never written to
    ///     disk.
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
        for name in request.ruleFields where fields[name] != nil {
            fields[name] = nil
            lacksRuleFields = true
        }
        for name in secretFields where fields[name] != nil {
            fields[name] = nil
            lacksCredentials = true
        }
        firstOriginFields = request.firstOriginFields.filter(fields.contains)
    }

    init(id: DownloadID, created: WallTime, url: String, method: String) {
        self.id = id
        self.created = created
        self.url = url
        self.method = method
        fields = [:]
    }

    /// The request, without the secret fields and those of rules.
    ///
    /// - Throws: `.invalidURL` or `.invalidArgument` for a record edited by hand.
    func request() throws(CacheError) -> CacheRequest {
        guard let method = HTTPRequest.Method(method) else {
            throw CacheError(.invalidArgument, "'\(method)' is not a method")
        }
        var request = try CacheRequest(url, key: explicitKey, method: method)
        request.fields = fields
        request.firstOriginFields = firstOriginFields
        request.body = body.map { Data($0) }
        request.options.set(.pinned, to: isPinned)
        request.priority = priority
        request.expectedDigests = digests
        request.options.set(.avoidsExpensiveNetworks, to: avoidsExpensiveNetworks)
        return request
    }
}
