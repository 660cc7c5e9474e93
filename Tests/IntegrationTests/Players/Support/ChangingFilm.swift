import HTTPTypes
import Testing
import TieredCacheTesting

extension PlayerStage {
    /// Lets a player play a film that becomes another one at the origin meanwhile, and then again.
    ///
    /// It sees the one that it has begun with, as far as that comes, and the next time the other.
    func expectNoMixture(
        sourceLocation: SourceLocation = #_sourceLocation,
        _ play: @Sendable @escaping (String) async throws -> Pictures
    ) async throws {
        // Asked at each start whether it is current.
        try serve("fast.mp4", OriginScript(.throttled(bytesPerSecond: 1 << 20))) {
            $0.fields[.cacheControl] = "no-cache"
        }
        let url = try url("fast.mp4")
        let new = try await MediaFiles.pictures(of: "other.mp4", in: media.directory)
        async let playing = play(url)
        await origin.waitUntil { $0.bodyBytesWritten(for: "/fast.mp4") > 300_000 }
        let other = try media.bytes("other.mp4")
        origin.update("/fast.mp4") { film in
            film.body = .bytes(other)
            film.version += 1
        }
        let seen = try await playing.digests
        // The last packet may have come only in part; every other picture is the old film's.
        let strange = Set(seen).subtracting(media.pictures.digests)
        #expect(seen.count >= 1 && strange.count <= 2, sourceLocation: sourceLocation)
        #expect(strange.isDisjoint(with: new.digests), sourceLocation: sourceLocation)
        // A player that starts now is a new reader.
        let next = try await play(url)
        #expect(next == new, sourceLocation: sourceLocation)
    }
}
