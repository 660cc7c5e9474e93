import SystemPackage
import TieredCache

/// What a person at a terminal sees of several prefetches.
///
/// One line while they last, a sentence at the end, and one for what holds them up. Says nothing
/// elsewhere.
final class PrefetchScreen: Sendable {
    private let tally: Guarded<PrefetchTally>
    private let events: AsyncStream<MediaCache.Event>?
    private let bar: ProgressBar
    private let time = SystemTimeSource()

    /// Watches a cache from now on.
    ///
    /// - Parameters:
    ///   - cache: whose shutdown ends ``show()``.
    ///   - requests: what is fetched.
    ///   - isOfHeads: whether only the beginning of each is wanted.
    init(_ cache: MediaCache, requests: [CacheRequest], isOfHeads: Bool) {
        let names = requests.map(\.name)
        tally = Guarded(PrefetchTally(names: names, isOfHeads: isOfHeads))
        events = Terminal.isTerminal(.standardError) ? cache.events() : nil
        bar = ProgressBar(isWanted: true, start: time.monotonicTime())
    }

    /// Draws the line until the cache is shut down.
    func show() async {
        guard let events else { return }
        var bar = bar
        for await event in events {
            let tally = tally.withLock { tally in
                tally.take(event)
                return tally.shown
            }
            bar.update(
                name: tally.name,
                bytes: tally.bytes,
                total: tally.total,
                source: nil,
                now: time.monotonicTime()
            )
        }
        bar.clear()
    }

    /// The same request, with plain words for what holds it up.
    func watching(_ request: CacheRequest) -> CacheRequest {
        var request = request
        let (bar, name) = (bar, request.name)
        request.onNotice = { notice in NoticeLine(notice, name: name).map { bar.say($0.text) } }
        return request
    }

    /// One of them is stored.
    func didEnd(_ report: GetReport) {
        tally.withLock {
            $0.didEnd(fromOrigin: report.fromOrigin, fromCache: report.fromCache)
        }
    }

    /// Says what has become of them; after ``show()``.
    func conclude() {
        if let conclusion = tally.withLock({ $0.conclusion }) { bar.say(conclusion) }
    }
}
