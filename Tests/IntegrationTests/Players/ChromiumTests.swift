import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

/// A `<video>` in a real browser plays and seeks through the proxy, and shows what it shows of what
/// it gets from the origin itself.
///
/// It knows HLS, but no DASH.
@Suite(
    .tags(.player, .realTime),
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.chromium.isInstalled,
    PlayerTool.ffmpeg.isInstalled
)
struct ChromiumTests {
    /// Plays one film after the other and tells of each one line, at the end; of what it gets from
    /// the origin itself only the pictures are of use.
    private static let page = """
        <!doctype html><video id=video muted crossorigin=anonymous></video><script>
        const video = document.getElementById('video'), canvas = document.createElement('canvas')
        const failure = () => new Promise((_, reject) =>
            video.addEventListener('error', () => reject(video.error.message), {once: true}))
        const once = name => Promise.race([failure(), new Promise(resolve =>
            video.addEventListener(name, resolve, {once: true}))])
        // What was shown before may be told of only now.
        const shown = place => Promise.race([failure(), new Promise(resolve => {
            const look = (_, frame) => {
                if (Math.abs(frame.mediaTime - place) < 0.1) resolve()
                else video.requestVideoFrameCallback(look)
            }
            video.requestVideoFrameCallback(look)
        })])
        const digest = () => {
            canvas.width = video.videoWidth
            canvas.height = video.videoHeight
            const context = canvas.getContext('2d', {willReadFrequently: true})
            context.drawImage(video, 0, 0)
            let sum = 2166136261
            for (const byte of context.getImageData(0, 0, canvas.width, canvas.height).data)
                sum = Math.imul(sum ^ byte, 16777619) >>> 0
            return sum
        }
        const play = async url => {
            const times = [], pictures = []
            let since = performance.now()
            const tell = () => times.push(Math.round(performance.now() - since))
            video.src = url
            await once('canplay')
            tell()
            for (const place of [4, 1]) {
                since = performance.now()
                const frame = shown(place), seeked = once('seeked')
                video.currentTime = place
                await seeked
                await frame
                tell()
                pictures.push(digest())
            }
            if (!url.includes('/plain/')) {
                video.playbackRate = 8
                const ended = once('ended')
                await video.play()
                await ended
            }
            return times.join() + ';' + pictures.join()
        }
        const all = async () => {
            const lines = []
            for (const url of location.hash.slice(1).split('|'))
                lines.push(await play(url).catch(error => String(error)))
            fetch(location.pathname + '-done?' + lines.join('|').replace(/[^-:;,.|\\w]/g, '_'))
        }
        all()
        </script>
        """

    @Test(
        "A video plays, seeks and ends as from the origin, each byte once, and again without it",
        arguments: [
            ["tail.mp4", "fast.mp4", "scattered.mp4", "film.mkv"], ["aes.m3u8", "fmp4.m3u8"],
        ]
    )
    func plays(_ names: [String]) async throws {
        try await PlayerStage.with { stage in
            for name in names {
                try stage.servePresentation(name)
                try stage.servePresentation(name, under: "/plain")
            }
            let urls = try names.map(stage.url)
            let plain = names.map { stage.origin.url("/plain/\($0)") }
            let first = try await play(stage, "/first.html", urls + plain)
            let wanted = Array(first[names.count...])
            tell(names, first)
            check(first[..<names.count], against: wanted)
            stage.expectEachByteOnce("chromium \(names)")
            try await stage.withoutOrigin {
                let second = try await play(stage, "/second.html", urls)
                tell(names.map { "\($0), again" }, second)
                check(second[...], against: wanted)
            }
        }
    }

    /// What came through the proxy is what came from the origin: another picture at each place.
    private func check(_ seen: ArraySlice<String>, against wanted: [String]) {
        let pictures = seen.map { $0.split(separator: ";").last ?? "" }
        #expect(pictures == wanted.map { $0.split(separator: ";").last ?? "" })
        for line in pictures {
            #expect(Set(line.split(separator: ",")).count == 2, "\(seen)")
        }
    }

    /// Says how long it took until each could be played, and to go to 4 s and 1 s.
    private func tell(_ names: [String], _ lines: [String]) {
        for (name, line) in zip(names, lines) {
            let times = line.split(separator: ";").first?.split(separator: ",").compactMap {
                Int($0)
            }
            for (what, time) in zip(["start", "seek to 4 s", "seek to 1 s"], times ?? []) {
                PlayerFigures.tell("chromium \(name)", what, .milliseconds(time))
            }
        }
    }

    @Test("An origin that is slow, cuts, stalls and refuses changes nothing that is shown")
    func troubledOrigins() async throws {
        try await PlayerStage.with { stage in
            try stage.serve("tail.mp4", .troubled)
            try stage.serve("tail.mp4", under: "/plain")
            let urls = [try stage.url("tail.mp4"), stage.origin.url("/plain/tail.mp4")]
            let lines = try await play(stage, "/troubled.html", urls)
            check(lines[..<1], against: Array(lines[1...]))
            stage.expectLittleTwice("chromium tail.mp4, troubled")
        }
    }

    @Test("A film that changes under it never mixes with the next one")
    func changes() async throws {
        try await PlayerStage.with { stage in
            for name in ["tail.mp4", "other.mp4"] { try stage.serve(name, under: "/plain") }
            let old = stage.origin.url("/plain/tail.mp4")
            let seen = try await stage.whileItChanges {
                try await play(stage, "/first.html", [$0, old])
            }
            // It gives up where it sees another entity tag.
            if seen[0].contains(";") { check(seen[..<1], against: Array(seen[1...])) }
            let new = stage.origin.url("/plain/other.mp4")
            let next = try await play(stage, "/second.html", [stage.url("fast.mp4"), new])
            check(next[..<1], against: Array(next[1...]))
            #expect(next[1].split(separator: ";").last != seen[1].split(separator: ";").last)
        }
    }

    /// Plays in a browser of its own, from a page under a path of its own: a line for each film.
    private func play(
        _ stage: PlayerStage,
        _ page: String,
        _ urls: [String]
    ) async throws -> [String] {
        let report = try await stage.browse(Self.page, at: page, urls.joined(separator: "|"))
        let lines = report.split(separator: "|")
        try #require(lines.count == urls.count, "\(report)")
        return lines.map(String.init)
    }
}
