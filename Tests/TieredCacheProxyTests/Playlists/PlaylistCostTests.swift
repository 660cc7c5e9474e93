import HTTPCaching
import TestParts
import Testing

@testable import TieredCacheProxy

/// What a playlist costs is in proportion to its length, whatever stands in it: counted, not timed.
@Suite(.timeLimit(.minutes(10)))
struct PlaylistCostTests {
    /// A hostile playlist of about so many bytes.
    struct Family: Sendable, CustomTestStringConvertible {
        let name: String
        var head = "#EXTM3U\n"
        let piece: String
        var testDescription: String { name }

        func bytes(_ count: Int) -> [UInt8] {
            repeated(max(1, (count - head.utf8.count) / piece.utf8.count))
        }

        func repeated(_ count: Int) -> [UInt8] {
            Array((head + String(repeating: piece, count: count)).utf8)
        }
    }

    private static func define(_ name: String, _ length: Int) -> String {
        let value = String(repeating: "v", count: length)
        return "#EXT-X-DEFINE:NAME=\"\(name)\",VALUE=\"\(value)\"\n"
    }

    private static let families = [
        Family(name: "names without end", head: "#EXTM3U\n\(define("a", 1))", piece: "{$"),
        Family(name: "one name often", head: "#EXTM3U\n\(define("a", 4000))", piece: "{$a}{$a}\n"),
        Family(
            name: "the last name unknown",
            head: "#EXTM3U\n\(define("a", 4000))",
            piece: "{$a}{$a}{$a}{$b}\n"
        ),
        Family(name: "many definitions", piece: "#EXT-X-DEFINE:QUERYPARAM=\"q\"\n{$q}\n"),
        Family(name: "roots", piece: "/\n"), Family(name: "names", piece: "a\n"),
        Family(name: "parents", piece: "..\n"), Family(name: "queries", piece: "?\n"),
        Family(name: "keys", piece: "#EXT-X-KEY:URI=\"/\"\n"),
        Family(name: "attributes", piece: "#EXT-X-KEY:URI=\"\n"),
        Family(name: "bases", head: "<MPD>", piece: "<BaseURL>/</BaseURL>"),
        Family(name: "bases inside", head: "<MPD>", piece: "<a><BaseURL>x</BaseURL></a>"),
        Family(
            name: "below a long base",
            head: "<MPD><BaseURL>/\(String(repeating: "b", count: 8000))/</BaseURL>",
            piece: "<a/>"
        ),
        Family(name: "nothing that ends", head: "<MPD>", piece: "<a b='"),
        Family(name: "comments", head: "<MPD>", piece: "<!--"),
        Family(name: "attributes of addresses", head: "<MPD>", piece: "<SegmentURL media='/'/>"),
    ]

    @Test("Twice the playlist costs twice as much", .tags(.long), arguments: families)
    func costIsLinear(_ family: Family) throws {
        for place in PlaylistLaws.Place.all {
            let costs = try [150, 300, 600].map { count in
                try PlaylistLaws.cost(family.repeated(count), place).get()
            }
            for (less, more) in zip(costs, costs.dropFirst()) where !more.isRefused {
                // What is paid once, such as a long definition, does not double.
                #expect(more.work <= 2 * less.work + 20_000, "\(place.name) \(costs)")
                #expect(more.output <= 2 * less.output + 20_000, "\(place.name) \(costs)")
            }
        }
    }

    @Test("A large one is within its budget or refused", .tags(.long), arguments: families)
    func largeOnes(_ family: Family) throws {
        for place in PlaylistLaws.Place.all {
            _ = try PlaylistLaws.cost(family.bytes(60_000), place).get()
        }
    }

    @Test("Any mixture of hostile pieces keeps to the laws")
    func mixtures() throws {
        for seed in UInt64(1)...20 {
            var random = SeededMixture(seed: seed)
            let bytes = random.bytes(of: Self.families, count: 6000)
            for place in PlaylistLaws.Place.all {
                switch PlaylistLaws.cost(bytes, place) {
                case .success: break
                case .failure(let broken): Issue.record("seed \(seed), \(place.name): \(broken)")
                }
            }
        }
    }

    @Test(
        "Putting variables in looks at each byte a few times at most",
        arguments: ["{$", "{", "{$x", "}{$", "{${}", "{$a}", "$", "{$a}{$", "x{"]
    )
    func substitutionIsLinear(_ piece: String) throws {
        let variables = HLSVariables(
            Array("#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"v\"\n".utf8),
            at: try TargetURI("http://h/"),
            importing: HLSVariables()
        )
        for count in [100, 1000, 4000] {
            let text = CountedBytes(Array(String(repeating: piece, count: count).utf8))
            var budget = PlaylistBudget(forLength: count)
            _ = variables.substituted(text, budget: &budget)
            #expect(
                text.reads.count <= 8 * text.count + 100,
                "\(text.reads.count) of \(text.count)"
            )
        }
    }

    @Test("Of a manifest no more is read than can be used")
    func manifests() {
        let template = String(repeating: "$RepresentationID$", count: 10_000)
        let text = """
            <MPD mediaPresentationDuration="PT900000S"><Period><AdaptationSet>
            <SegmentTemplate media="\(template)" duration="1"/><Representation/>
            </AdaptationSet></Period></MPD>
            """
        let sets = DASHManifest(Array(text.utf8)).sets
        // 16 MiB of a template of 180,000 bytes, whatever comes of it.
        #expect(sets.first?.first?.addresses(atMost: .max).count == 94)
        let many = "<AdaptationSet>" + String(repeating: "<Representation/>", count: 30_000)
        #expect(DASHManifest(Array("<MPD>\(many)".utf8)).sets.first?.count == 20_000)
    }
}

/// Bytes that count how often they are looked at.
private struct CountedBytes: Collection {
    final class Reads {
        var count = 0
    }

    let bytes: [UInt8]
    let reads = Reads()

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var startIndex: Int { 0 }
    var endIndex: Int { bytes.count }

    func index(after index: Int) -> Int { index + 1 }

    subscript(position: Int) -> UInt8 {
        reads.count += 1
        return bytes[position]
    }
}

/// Pieces of families, one after the other, cut anywhere.
private struct SeededMixture {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    private mutating func next(below limit: Int) -> Int {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return Int(state % UInt64(limit))
    }

    mutating func bytes(of families: [PlaylistCostTests.Family], count: Int) -> [UInt8] {
        var bytes = Array(families[next(below: families.count)].head.utf8)
        while bytes.count < count {
            let family = families[next(below: families.count)]
            let piece = Array((next(below: 9) == 0 ? family.head : family.piece).utf8)
            bytes += piece.prefix(next(below: 5) == 0 ? next(below: piece.count) : piece.count)
        }
        return bytes
    }
}
