import HTTPCaching
import HTTPTypes
import NIOCore
import TieredCache

/// A cache of routes and encoded field lines for targets that are requested repeatedly.
///
/// Bounded: it has two halves of `capacity` targets each. The older half is dropped when the
/// younger one is full; a target that is requested again moves to the younger half.
final class ResponseHeadCache: Sendable {
    private struct Halves {
        var younger: [String: Page] = [:]
        var older: [String: Page] = [:]
    }

    /// The cached facts of one target.
    final class Page: Sendable {
        let request: RepeatedRequest
        fileprivate let written = Guarded<Lines?>(nil)

        init(_ request: RepeatedRequest) {
            self.request = request
        }
    }

    /// The field lines of a response, valid for a second, because of `Age`, `Date` and the
    /// remaining lifetime.
    struct Lines: Sendable {
        var head: HitHead
        var tier: MediaCache.Event.Tier
        var second: Int64
        /// nil if responses with this head must not be sent from the hit path.
        var text: ByteBuffer?
    }

    private let halves = Guarded(Halves())
    private let capacity: Int

    init(capacity: Int = 512) {
        self.capacity = capacity
    }

    /// The page of a target, or nil.
    func page(of target: String) -> Page? {
        halves.withLock { halves in
            if let page = halves.younger[target] { return page }
            guard let page = halves.older.removeValue(forKey: target) else { return nil }
            halves.younger[target] = page
            return page
        }
    }

    /// Adds a page; a page that is dropped for it is computed again when needed.
    func keep(_ page: Page, of target: String) {
        let forgotten = halves.withLock { halves -> [String: Page] in
            halves.younger[target] = page
            guard halves.younger.count >= capacity else { return [:] }
            let forgotten = halves.older
            halves.older = halves.younger
            halves.younger = [:]
            return forgotten
        }
        withExtendedLifetime(forgotten) {}  // Releases many objects outside the lock.
    }
}

extension ResponseHeadCache.Page {
    /// The field lines of the response to a hit, encoded at most once a second.
    ///
    /// - Parameters:
    ///   - hit: the hit.
    ///   - now: the present.
    ///   - fields: makes the fields, which include `Date`; nil if the head must not be sent from
    ///     the hit path.
    /// - Returns: the lines, or nil.
    func lines(
        of hit: ImmediateHit,
        now: WallTime,
        _ fields: () -> HTTPFields?
    ) -> ByteBuffer? {
        let known = written.withLock { $0 }
        if let known, known.head === hit.head, known.tier == hit.tier, known.second == now.seconds {
            return known.text
        }
        let text = fields().map { fields in
            var text = ByteBuffer()
            ResponseHead.write(fields, into: &text)
            return text
        }
        written.withLock {
            $0 = .init(head: hit.head, tier: hit.tier, second: now.seconds, text: text)
        }
        return text
    }
}
