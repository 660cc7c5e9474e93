import HTTPCaching
import HTTPTypes
import NIOCore
import TieredCache

/// The status page: stored entries and downloads in progress.
struct StatusPage: Sendable {
    /// The most rows, because the page reloads every two seconds.
    static let maximumRows = 500

    private let cache: MediaCache
    private let rates: ProgressRates

    init(cache: MediaCache, time: any TimeSource) {
        self.cache = cache
        rates = ProgressRates(time: time)
    }

    /// The page for the present state.
    ///
    /// - Parameter base: the proxy's own URL.
    /// - Returns: the page; it must not be stored or framed, and loads nothing from elsewhere.
    func answer(base: String) async -> WholeResponse {
        do throws(CacheError) {
            let usage = try await cache.usage()
            let (rows, more) = try await rows()
            return Self.html(
                StatusHTML.page(rows, more: more, usage: usage, statistics: cache.statistics)
            )
        } catch {
            // The statistics of a cache without a disk are shown nevertheless.
            let page = StatusHTML.page(
                [],
                usage: nil,
                statistics: cache.statistics,
                problem: error.message
            )
            return Self.html(page)
        }
    }

    /// The rows, and the number of entries without one.
    ///
    /// Not on an event loop: the time grows with the number of entries.
    private func rows() async throws(CacheError) -> (rows: [StatusRow], more: Int) {
        let found: Result<(rows: [StatusRow], more: Int), CacheError> =
            await withTaskExecutorPreference(PlaylistRelay.threads) {
                do throws(CacheError) {
                    let entries = try await cache.entries()
                    let speeds = rates.update(entries.map { ($0.key.string, $0.storedBytes) })
                    let rows = Self.rows(of: entries, speeds: speeds)
                    return .success((rows, entries.count - rows.count))
                } catch {
                    return .failure(error)
                }
            }
        return try found.get()
    }

    /// The rows: growing entries first, then the most recently used; at most ``maximumRows``.
    private static func rows(of entries: [EntrySummary], speeds: [String: Int64]) -> [StatusRow] {
        let rows = entries.map { ($0, speeds[$0.key.string] ?? 0) }
            .sorted { one, other in
                let (isFirst, isSecond) = (one.1 > 0, other.1 > 0)
                guard isFirst == isSecond else { return isFirst }
                let (use, otherUse) = (one.0.lastUse ?? .max, other.0.lastUse ?? .max)
                return use == otherUse ? one.0.url < other.0.url : use > otherUse
            }
        return rows.prefix(maximumRows).map { StatusRow($0.0, rate: $0.1) }
    }

    /// The metrics for Prometheus; without those of the disk tier if it is not usable.
    func metrics() async -> WholeResponse {
        do throws(CacheError) {
            return MetricsPage.answer(cache.statistics, usage: try await cache.usage())
        } catch {
            return MetricsPage.answer(cache.statistics, usage: nil)
        }
    }

    /// Performs the action of a form, and redirects to the page.
    ///
    /// - Parameters:
    ///   - action: the action.
    ///   - form: the submitted values.
    ///   - base: the proxy's own URL.
    /// - Returns: the redirect.
    /// - Throws: the error of the cache.
    func perform(
        _ action: PlayerRoute.PageAction,
        with form: PageForm,
        base: String
    ) async throws -> WholeResponse {
        guard let url = form["url"], let request = Self.request(url) else { return .text(400) }
        switch action {
        case .remove:
            try await cache.remove(request)
        case .pin:
            try await cache.setPinned(true, for: request)
        case .unpin:
            try await cache.setPinned(false, for: request)
        }
        return WholeResponse(
            // RFC 9110 §15.4.4: a reload of the page then does not submit the form again.
            head: ResponseHead(status: 303, fields: [.location: base], framing: .length(0))
        )
    }

    private static func request(_ url: String) -> CacheRequest? {
        do {
            return try CacheRequest(url)
        } catch {
            // The client gets 400.
            return nil
        }
    }

    private static func html(_ text: String) -> WholeResponse {
        var fields: HTTPFields = [
            .contentType: "text/html; charset=utf-8", .cacheControl: "no-store",
            .contentSecurityPolicy: "default-src 'none'; style-src 'unsafe-inline'; "
                + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
            .xContentTypeOptions: "nosniff",
        ]
        // The URL contains the token: no link may reveal it.
        if let name = HTTPField.Name("Referrer-Policy") { fields[name] = "no-referrer" }
        return WholeResponse(
            head: ResponseHead(
                status: 200,
                fields: fields,
                framing: .length(Int64(text.utf8.count))
            ),
            body: ByteBuffer(string: text)
        )
    }
}
