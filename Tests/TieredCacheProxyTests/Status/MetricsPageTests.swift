import Foundation
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// The metrics, read as strictly as `promtool check metrics` reads them.
@Suite(.timeLimit(.minutes(10)))
struct MetricsPageTests {
    private struct Family {
        var help: String?
        var type: String?
        var samples: [Double] = []
    }

    /// Reads text format 0.0.4, of metrics without labels.
    private func families(_ text: String) throws -> [String: Family] {
        try #require(text.hasSuffix("\n") && !text.contains("\r") && !text.contains("\n\n"))
        var families: [String: Family] = [:]
        var open = ""
        for line in text.dropLast().split(separator: "\n", omittingEmptySubsequences: false) {
            let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
                .map(String.init)
            if words[0] == "#" {
                try #require(words.count == 4 && ["HELP", "TYPE"].contains(words[1]), "\(line)")
                if words[2] != open {
                    // The lines of a family stand together.
                    try #require(families[words[2]] == nil, "\(line)")
                    open = words[2]
                }
                var family = families[open, default: Family()]
                try #require(family.samples.isEmpty, "\(line)")
                if words[1] == "HELP" {
                    try #require(family.help == nil && !words[3].isEmpty, "\(line)")
                    family.help = words[3]
                } else {
                    try #require(family.type == nil, "\(line)")
                    try #require(["counter", "gauge"].contains(words[3]), "\(line)")
                    family.type = words[3]
                }
                families[open] = family
                continue
            }
            try #require(words.count == 2 && words[0] == open, "\(line)")
            families[open]?.samples.append(try #require(Double(words[1]), "\(line)"))
        }
        return families
    }

    @Test func theyAreWellFormedAndWellNamed() async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/a.mp4", .fresh(100_000))
            for _ in 0..<3 { _ = try await fixture.ask("/a.mp4") }
            let answer = try await fixture.request("GET", "metrics")
            #expect(answer["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
            let families = try families(answer.text)
            #expect(families.count >= 20)
            for (name, family) in families {
                let isName = name.utf8.allSatisfy {
                    $0 == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                }
                #expect(isName && name.hasPrefix("tieredcache_"), "\(name)")
                #expect(family.help != nil && family.samples.count == 1, "\(name)")
                #expect(family.samples.allSatisfy { $0 >= 0 && $0.isFinite }, "\(name)")
                // By convention counters, and only they, are totals.
                #expect((family.type == "counter") == name.hasSuffix("_total"), "\(name)")
            }
            #expect(families["tieredcache_origin_bytes_total"]?.samples == [100_000])
            #expect(families["tieredcache_entries"]?.samples == [1])
        }
    }
}
