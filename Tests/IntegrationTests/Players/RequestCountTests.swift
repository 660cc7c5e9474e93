import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

/// How many requests an origin gets for badly interleaved films: of a player alone, and through
/// the proxy. `make check-players` prints the rows as a table.
@Suite(
    .tags(.player, .realTime),
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.ffmpeg.isInstalled
)
struct RequestCountTests {
    /// A player and a film of a minute.
    struct Row: Sendable, CustomTestStringConvertible {
        let player: WholePlay
        let isIndexFirst: Bool
        /// In each of so many pieces all sound lies behind all pictures.
        let pieces: Int

        var testDescription: String {
            "\(player.rawValue) | \(isIndexFirst ? "`moov` first" : "`moov` last")"
                + " | \(pieces == 1 ? "the whole" : "\(60 / pieces) s")"
        }

        static let all = WholePlay.allCases.filter(\.isInstalled).flatMap { player in
            [1, 15].flatMap { pieces in
                [true, false].map {
                    Row(player: player, isIndexFirst: $0, pieces: pieces)
                }
            }
        }
        // docs/players.md tells what that one costs; alone it hangs now and then.
        .filter { $0.player != .gstreamer || $0.pieces > 1 }

        /// Whether the row has to stay within the bound: where the player alone makes one request or
        /// three, the few that the proxy makes of a whole film are as many as the bound.
        var isBound: Bool {
            switch player {
            case .gstreamer, .chromium: false
            case .vlc: pieces == 1
            default: true
            }
        }
    }

    struct Counts: Sendable {
        var alone = 0
        var proxied = 0
    }

    @Test(
        "A badly interleaved film costs the origin at most half as many requests again, and eight",
        arguments: Row.all
    )
    func requests(_ row: Row) async throws {
        let film = try await Self.film(row)
        var said: [String] = []
        var alone = 0
        // How much comes before a player goes elsewhere differs from run to run.
        for _ in 1...5 {
            guard let counts = try await Self.count(row, film) else { continue }
            alone = max(alone, counts.alone)
            let bound = alone * 3 / 2 + 8
            said.append("| \(row.testDescription) | \(alone) | \(counts.proxied) | \(bound) |")
            print(said.last ?? "")
            if counts.proxied <= bound || !row.isBound { return }
        }
        if row.isBound { Issue.record("\(said)") }
    }

    /// - Returns: nil if the player has not played.
    private static func count(_ row: Row, _ film: [UInt8]) async throws -> Counts? {
        let counts = Guarded<Counts?>(nil)
        try await PlayerStage.with { stage in
            let resource = OriginResource(
                .bytes(film),
                contentType: "video/mp4",
                fields: [.cacheControl: "max-age=3600", .accessControlAllowOrigin: "*"]
            )
            for path in ["/alone.mp4", "/proxied.mp4"] { stage.origin.serve(path, resource) }
            let plain = stage.origin.url("/alone.mp4")
            guard try await row.player.play(plain, on: stage),
                try await row.player.play(stage.url("proxied.mp4"), on: stage)
            else { return }
            let log = stage.origin.log
            counts.withLock {
                $0 = Counts(
                    alone: log.exchanges(for: "/alone.mp4").count,
                    proxied: log.exchanges(for: "/proxied.mp4").count
                )
            }
        }
        return counts.withLock { $0 }
    }

    private static let made = Task { try await make() }

    private static func film(_ row: Row) async throws -> [UInt8] {
        let directory = try await made.value
        let bytes = try directory.bytes(row.isIndexFirst ? "first.mp4" : "last.mp4")
        return try ScatteredFilm(bytes, pieces: row.pieces).bytes
    }

    /// A minute of pictures and sound, noisy enough to be large.
    private static func make() async throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory("tieredcache-minute")
        let source = [
            "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25:duration=60",
            "-f", "lavfi", "-i", "sine=frequency=440:duration=60", "-vf", "noise=alls=40:allf=t",
            "-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-b:v", "1500k",
            "-pix_fmt", "yuv420p", "-c:a", "aac", "last.mp4",
        ]
        let copy = ["-i", "last.mp4", "-c", "copy", "-movflags", "+faststart", "first.mp4"]
        for arguments in [source, copy] {
            let outcome = try await PlayerTool.ffmpeg.run(
                ["-nostdin", "-v", "error", "-y"] + arguments,
                in: directory.path
            )
            try #require(outcome.hasSucceeded, "\(outcome.error)")
        }
        return directory
    }
}
