import HTTPCaching
import HTTPTypes
import NIOCore
import TieredCache

/// The page at the base: what is cached and what is on its way, for people.
struct StatusPage: Sendable {
    /// More is a long page, loaded every two seconds.
    static let maximumRows = 500

    private let cache: MediaCache
    private let rates: ProgressRates

    init(cache: MediaCache, time: any TimeSource) {
        self.cache = cache
        rates = ProgressRates(time: time)
    }

    /// The page as it is now.
    ///
    /// - Parameter base: the proxy's own URL.
    /// - Returns: the page; it may not be kept, framed, or load anything from elsewhere.
    func answer(base: String) async -> WholeAnswer {
        do throws(CacheError) {
            let entries = try await cache.entries()
            let usage = try await cache.usage()
            let speeds = rates.update(entries.map { ($0.key.string, $0.storedBytes) })
            let rows = Self.first(entries, speeds)
            let more = entries.count - rows.count
            return Self.html(StatusHTML.page(rows, more: more, usage, cache.statistics))
        } catch {
            // What the cache does without a disk is to be seen all the same.
            let page = StatusHTML.page([], nil, cache.statistics, problem: error.message)
            return Self.html(page)
        }
    }

    /// What is on its way, and then what was used last; no more than anybody looks through.
    private static func first(_ entries: [EntrySummary], _ speeds: [String: Int64]) -> [StatusRow] {
        let rows = entries.map { ($0, speeds[$0.key.string] ?? 0) }
            .sorted { one, other in
                let (isFirst, isSecond) = (one.1 > 0, other.1 > 0)
                guard isFirst == isSecond else { return isFirst }
                let (use, otherUse) = (one.0.lastUse ?? .max, other.0.lastUse ?? .max)
                return use == otherUse ? one.0.url < other.0.url : use > otherUse
            }
        return rows.prefix(maximumRows).map { StatusRow($0.0, rate: $0.1) }
    }

    /// The figures for Prometheus; without those of a disk that cannot be asked.
    func metrics() async -> WholeAnswer {
        do throws(CacheError) {
            return MetricsPage.answer(cache.statistics, try await cache.usage())
        } catch {
            return MetricsPage.answer(cache.statistics, nil)
        }
    }

    /// Does what a form asks for, and leads back to the page.
    ///
    /// - Parameters:
    ///   - action: which button.
    ///   - form: what was sent with it.
    ///   - base: the proxy's own URL.
    /// - Returns: the redirect.
    /// - Throws: what the cache says.
    func perform(
        _ action: PlayerRoute.PageAction,
        _ form: PageForm,
        base: String
    ) async throws -> WholeAnswer {
        guard let url = form["url"], let request = Self.request(url) else { return .text(400) }
        switch action {
        case .remove:
            try await cache.remove(request)
        case .pin:
            try await cache.setPinned(true, for: request)
        case .unpin:
            try await cache.setPinned(false, for: request)
        }
        return WholeAnswer(
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

    private static func html(_ text: String) -> WholeAnswer {
        var fields: HTTPFields = [
            .contentType: "text/html; charset=utf-8", .cacheControl: "no-store",
            .contentSecurityPolicy: "default-src 'none'; style-src 'unsafe-inline'; "
                + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
            .xContentTypeOptions: "nosniff",
        ]
        // The token is in the address: no link may carry it elsewhere.
        if let name = HTTPField.Name("Referrer-Policy") { fields[name] = "no-referrer" }
        return WholeAnswer(
            head: ResponseHead(
                status: 200,
                fields: fields,
                framing: .length(Int64(text.utf8.count))
            ),
            body: ByteBuffer(string: text)
        )
    }
}
