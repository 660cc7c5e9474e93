import SystemPackage
import TieredCache

/// The progress of several prefetches on a terminal.
///
/// Shows one line while they run, notices about delays, and a summary at the end. Writes nothing if
/// standard error is no terminal.
final class PrefetchScreen: Sendable {
    private let tally: Guarded<PrefetchTally>
    private let events: AsyncStream<MediaCache.Event>?
    private let bar: ProgressBar
    private let time = SystemTimeSource()

    /// Starts to observe a cache.
    ///
    /// - Parameters:
    ///   - cache: the cache; its shutdown ends ``show()``.
    ///   - requests: the requests to be fetched.
    ///   - isOfHeads: whether only the beginning of each is fetched.
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

    /// The same request, with notices about delays for the terminal.
    func watching(_ request: CacheRequest) -> CacheRequest {
        var request = request
        let (bar, name) = (bar, request.name)
        request.onNotice = { notice in NoticeLine(notice, name: name).map { bar.say($0.text) } }
        return request
    }

    /// Records that a request is stored.
    func didEnd(_ report: GetReport) {
        tally.withLock {
            $0.didEnd(fromOrigin: report.fromOrigin, fromCache: report.fromCache)
        }
    }

    /// Writes the summary; call it after ``show()``.
    func conclude() {
        if let conclusion = tally.withLock({ $0.conclusion }) { bar.say(conclusion) }
    }
}
