import HTTPCaching
import HTTPTypes
import TieredCache

/// What a guest of the directory asks its owner for, see ``SharedRequest``.
struct GuestOrder: Sendable {
    /// The request to the cache, without a range.
    let request: CacheRequest
    /// The guest's conditions, which its stored bytes gave it, and its range.
    let conditions: PlayerConditions

    /// Reads a request.
    ///
    /// The result is nil for one that no guest of this version sends.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - rules: the owner's rules for hosts; the guest has applied its own.
    init?(_ request: ServerRequest, by rules: HostRules) {
        guard request.method == .get, !request.hasBody,
            request.target.hasPrefix(SharedRequest.prefix)
        else { return nil }
        var fields = request.fields
        let name = fields[SharedRequest.keyField]
        let key = name.flatMap { SharedRequest.name(of: $0) }
        guard name == nil || key != nil,
            let number = fields[SharedRequest.priorityField].flatMap({ Int($0) }),
            let priority = RequestPriority(rawValue: number)
        else { return nil }
        let reloads = fields[SharedRequest.reloadField] != nil
        fields[SharedRequest.reloadField] = nil
        fields[SharedRequest.keyField] = nil
        fields[SharedRequest.priorityField] = nil
        let secret = Set(
            (fields[SharedRequest.secretField] ?? "").split(separator: ", ")
                .compactMap { HTTPField.Name(String($0)) }
        )
        fields[SharedRequest.secretField] = nil
        do {
            let target = try TargetURI(
                String(request.target.dropFirst(SharedRequest.prefix.count))
            )
            var order = CacheRequest(target, key: key, method: .get)
            conditions = PlayerConditions(fields, isHead: false)
            // A guest that passes caches by must not get what this one has.
            if reloads || fields[.cacheControl] == "no-cache" { order.policy = .reload }
            order.fields = Self.selecting(StoredFields.endToEnd(fields))
            order.firstOriginFields = secret
            order.excludedHosts = rules.excluded
            order.priority = priority
            order.slotLimit = SharedRequest.patience
            self.request = order
        } catch {
            return nil  // No URL.
        }
    }

    /// The fields that the guest's own request had: what its engine added, this one adds as well,
    /// and requests whose fields differ share no transfer.
    private static func selecting(_ fields: HTTPFields) -> HTTPFields {
        HTTPFields(
            fields.filter { field in
                !CacheRequest.isOwnField(field) && field.name != .acceptEncoding
                    && DownloadRequest.defaultFields[field.name] != field.value
            }
        )
    }
}
