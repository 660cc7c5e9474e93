import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage

// What the application puts into the cache and asks of it without the origin.
extension Engine {
    func store(
        _ data: Data,
        for request: CacheRequest,
        contentType: String?
    ) async throws(CacheError) {
        let now = time.wallTime()
        var fields: HTTPFields = [.date: HTTPDate.format(now)]
        fields[.contentType] = contentType
        fields[.contentLength] = String(data.count)
        // Without a lifetime of the application's, it is fresh until it is removed.
        let lifetime = rules.applicationLifetime?.components.seconds ?? Int64(Int32.max)
        fields[.cacheControl] = "max-age=\(lifetime)"
        let head = StoredResponse(
            status: 200,
            fields: fields,
            requestTime: now,
            responseTime: now,
            origin: request.storedOrigin(),
            flags: .storedByApplication
        )
        try await storage.store(data, head, for: request.key, class: request.entryClass)
    }

    func fileURL(for key: CacheKey) async throws(CacheError) -> URL? {
        try await storage.bodyPath(for: key).map { URL(filePath: $0.string) }
    }
}
