import HTTPCaching

// In the fuzzer, whose module these are a part of, there is none.
#if canImport(TieredCacheProxy)
@testable import TieredCacheProxy
#endif

/// What holds for any bytes that are taken for a playlist: what they cost is in proportion to them.
enum PlaylistLaws {
    /// What a playlist was asked by and came from, redirected or not.
    struct Place: Sendable {
        let name: String
        let requested: String
        let final: String

        static let all = [
            Place(
                name: "at home",
                requested: "http://h/a/b.m3u8?q=1",
                final: "http://h/a/b.m3u8?q=1"
            ),
            Place(name: "elsewhere", requested: "http://h/a.m3u8", final: "http://g/b/c.m3u8?q=2"),
            Place(
                name: "far away",
                requested: "http://h/a.m3u8",
                final: "http://g/" + String(repeating: "p", count: 4000) + "/c.m3u8?q="
                    + String(repeating: "v", count: 4000)
            ),
        ]
    }

    /// What rewriting has cost, and what came of it.
    struct Cost: Equatable, Sendable {
        var output = 0
        var work = 0
        var isRefused = false
    }

    /// Rewrites and reads a playlist.
    ///
    /// - Parameters:
    ///   - bytes: what is taken for a playlist.
    ///   - place: where it is.
    /// - Returns: the cost, or the law that is broken.
    static func cost(_ bytes: [UInt8], _ place: Place) -> Result<Cost, Broken> {
        guard let requested = try? TargetURI(place.requested),
            let final = try? TargetURI(place.final)
        else { return .failure(Broken(law: "the place is a URL")) }
        var cost = Cost()
        for kind in [PlaylistKind.hls, .dash] {
            var budget = PlaylistBudget(forLength: bytes.count)
            let rewriter = PlaylistRewriter(kind, prefix: "/T/", requested: requested, final: final)
            let result = rewriter.rewrite(bytes, budget: &budget)
            cost.output += budget.output
            cost.work += budget.work
            cost.isRefused = cost.isRefused || result == nil
            // One address more than the budget has may be made before it is looked at.
            let margin = bytes.count + 40_000
            if let broken = broken(bytes, result, budget, margin) { return .failure(broken) }
        }
        let playlist = HLSPlaylist(bytes, at: final, atMost: 1000)
        let lists = [playlist.resources, playlist.keys, playlist.pictureLists]
        guard lists.allSatisfy({ $0.count <= 1000 }), playlist.variants.count <= 1000 else {
            return .failure(Broken(law: "no more is named than was asked for"))
        }
        return .success(cost)
    }

    private static func broken(
        _ bytes: [UInt8],
        _ result: [UInt8]?,
        _ budget: PlaylistBudget,
        _ margin: Int
    ) -> Broken? {
        if budget.output > budget.outputLimit + margin || budget.work > budget.workLimit + margin {
            return Broken(law: "the budget ends the work")
        }
        if (result == nil) != budget.isExceeded {
            return Broken(law: "what exceeds its budget is refused, and nothing else")
        }
        if let result, result.count > bytes.count + budget.output {
            return Broken(law: "all that is put in is counted")
        }
        return nil
    }

    struct Broken: Error, Equatable, CustomStringConvertible {
        let law: String
        var description: String { "not so: \(law)" }
    }
}
