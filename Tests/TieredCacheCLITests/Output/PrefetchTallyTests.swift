import Testing
import TieredCache

@testable import TieredCacheCLI

@Suite("The tally of prefetches", .timeLimit(.minutes(10)))
struct PrefetchTallyTests {
    private let a = CacheKey(explicit: "a")
    private let b = CacheKey(explicit: "b")

    private func progress(_ key: CacheKey, _ offset: Int64, of length: Int64?) -> MediaCache.Event {
        MediaCache.Event(key: key, .downloadProgressed(offset: offset, completeLength: length))
    }

    @Test("Bytes of all of them, and a total once every length is known")
    func sums() {
        var tally = PrefetchTally(names: ["a", "b"], isOfHeads: false)
        tally.take(progress(a, 100, of: 1000))
        #expect(tally.shown == ("0 of 2 URLs", 100, nil))
        tally.take(progress(b, 50, of: nil))
        #expect(tally.total == nil)
        tally.take(progress(b, 60, of: 500))
        tally.take(MediaCache.Event(key: a, .downloadStarted(offset: 0)))
        #expect(tally.shown == ("0 of 2 URLs", 160, 1500))
        // One that begins again has fewer.
        tally.take(progress(a, 10, of: 1000))
        #expect(tally.bytes == 70)
        tally.didEnd(fromOrigin: 1000, fromCache: 0)
        #expect(tally.name == "1 of 2 URLs")
    }

    @Test("What playlists refer to has no end that is known, nor have heads")
    func withoutTotal() {
        var playlist = PrefetchTally(names: ["a"], isOfHeads: false)
        playlist.take(progress(a, 10, of: 10))
        #expect(playlist.shown == ("a", 10, 10))
        playlist.take(progress(b, 10, of: 10))
        #expect(playlist.shown == ("a", 20, nil))
        var heads = PrefetchTally(names: ["a"], isOfHeads: true)
        heads.take(progress(a, 10, of: 1000))
        #expect(heads.total == nil)
    }

    @Test("Lengths that no number holds are no total")
    func overflow() {
        var tally = PrefetchTally(names: ["a", "b"], isOfHeads: false)
        tally.take(progress(a, .max, of: .max))
        tally.take(progress(b, .max, of: .max))
        #expect(tally.total == nil)
    }

    @Test("What is said at the end")
    func conclusions() {
        var tally = PrefetchTally(names: ["a", "b"], isOfHeads: false)
        #expect(tally.conclusion == nil)
        tally.didEnd(fromOrigin: 2048, fromCache: 0)
        #expect(tally.conclusion == "1 URL stored: 2.0 KiB from the network")
        tally.didEnd(fromOrigin: 0, fromCache: 1024)
        #expect(
            tally.conclusion == "2 URLs stored: 2.0 KiB from the network, 1.0 KiB stored already"
        )
    }
}
