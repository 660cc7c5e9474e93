import HTTPTypes
import Testing
import TieredCacheTesting

extension PlayerStage {
    /// Serves `fast.mp4`, which becomes `other.mp4` when a player has got some of it.
    ///
    /// - Parameter play: plays the film of a URL.
    /// - Returns: what it has returned.
    func whileItChanges<Seen: Sendable>(
        _ play: @Sendable @escaping (String) async throws -> Seen
    ) async throws -> Seen {
        // Asked at each start whether it is current.
        try serve("fast.mp4", OriginScript(.throttled(bytesPerSecond: 1 << 20))) {
            $0.fields[.cacheControl] = "no-cache"
        }
        let url = try url("fast.mp4")
        let other = try media.bytes("other.mp4")
        async let playing = play(url)
        await origin.waitUntil { $0.bodyBytesWritten(for: "/fast.mp4") > 300_000 }
        origin.update("/fast.mp4") { film in
            film.body = .bytes(other)
            film.version += 1
        }
        return try await playing
    }

    /// Lets a player play a film that becomes another one at the origin meanwhile, and then again.
    ///
    /// It sees the one that it has begun with, as far as that comes, and the next time the other.
    func expectNoMixture(
        sourceLocation: SourceLocation = #_sourceLocation,
        _ play: @Sendable @escaping (String) async throws -> Pictures
    ) async throws {
        let new = try await MediaFiles.pictures(of: "other.mp4", in: media.directory)
        let seen = try await whileItChanges(play).digests
        // The last packet may have come only in part; every other picture is the old film's.
        let strange = Set(seen).subtracting(media.pictures.digests)
        #expect(seen.count >= 1 && strange.count <= 2, sourceLocation: sourceLocation)
        #expect(strange.isDisjoint(with: new.digests), sourceLocation: sourceLocation)
        // A player that starts now is a new reader.
        let next = try await play(url("fast.mp4"))
        #expect(next == new, sourceLocation: sourceLocation)
    }
}
