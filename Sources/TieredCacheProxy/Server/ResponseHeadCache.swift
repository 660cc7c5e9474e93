import HTTPCaching
import HTTPTypes
import NIOCore
import TieredCache

/// What a server has found out about targets that are asked for again and again.
///
/// Bounded: of two halves, each for so many targets, the older one is forgotten when the younger
/// one is full; who is asked for again moves to the younger one.
final class ResponseHeadCache: Sendable {
    private struct Halves {
        var younger: [String: Page] = [:]
        var older: [String: Page] = [:]
    }

    /// What is known of one target.
    final class Page: Sendable {
        let request: RepeatedRequest
        fileprivate let written = Guarded<Lines?>(nil)

        init(_ request: RepeatedRequest) {
            self.request = request
        }
    }

    /// The field lines of an answer, good for a second: `Age`, `Date` and the rest of a lifetime.
    struct Lines: Sendable {
        var head: HitHead
        var tier: MediaCache.Event.Tier
        var second: Int64
        /// Nil: this head is not for hits.
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

    /// Keeps a page; what is forgotten for it is found out again.
    func keep(_ page: Page, of target: String) {
        let forgotten = halves.withLock { halves -> [String: Page] in
            halves.younger[target] = page
            guard halves.younger.count >= capacity else { return [:] }
            let forgotten = halves.older
            halves.older = halves.younger
            halves.younger = [:]
            return forgotten
        }
        withExtendedLifetime(forgotten) {}  // Many objects: their release is not for the lock.
    }
}

extension ResponseHeadCache.Page {
    /// The field lines of a hit's answer, written at most once a second.
    ///
    /// - Parameters:
    ///   - hit: what is answered with.
    ///   - now: the present.
    ///   - fields: makes the fields, `Date` among them; nil if this head is not for hits.
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
