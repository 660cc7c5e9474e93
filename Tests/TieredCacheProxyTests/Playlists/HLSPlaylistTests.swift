import Testing

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct HLSPlaylistTests {
    private let master = HLSPlaylist(
        Array(
            """
            #EXTM3U
            #EXT-X-SESSION-KEY:METHOD=AES-128,URI="s.key"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",URI="a/en.m3u8"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="b",NAME="English",URI="b/en.m3u8"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="b",NAME="In the video"
            #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1000,URI="i.m3u8"
            #EXT-X-STREAM-INF:BANDWIDTH=2000000,AUDIO="b"
            high.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=500000,CODECS="x,y",AUDIO="a"\r
            low.m3u8\r
            #EXT-X-STREAM-INF:BANDWIDTH=1000000,AUDIO="a"
            # a comment
            middle.m3u8
            """.utf8
        )
    )

    @Test("A master playlist has variants and renditions")
    func variants() {
        #expect(master.variants.map(\.bandwidth) == [2_000_000, 500_000, 1_000_000])
        #expect(master.renditions.map(\.address) == ["a/en.m3u8", "b/en.m3u8"])
        #expect(master.resources == ["s.key"])
    }

    @Test(
        "What is chosen comes with its audio",
        arguments: [
            ("all", ["high.m3u8", "low.m3u8", "middle.m3u8", "a/en.m3u8", "b/en.m3u8", "i.m3u8"]),
            ("highest", ["high.m3u8", "b/en.m3u8"]),
            ("lowest", ["low.m3u8", "a/en.m3u8"]),
            ("1500000", ["middle.m3u8", "a/en.m3u8"]),
            ("100", ["low.m3u8", "a/en.m3u8"]),
        ]
    )
    func choices(_ text: String, _ addresses: [String]) throws {
        let choice = try #require(VariantChoice(text))
        #expect(choice.addresses(in: master) == addresses)
    }

    @Test("A choice is a word or a number", arguments: ["", "best", "-1", "0", "1k"])
    func noChoices(_ text: String) {
        #expect(VariantChoice(text) == nil)
    }

    @Test("What is a gap is no resource; what follows it is")
    func gaps() {
        let text = """
            #EXTM3U
            #EXTINF:1,
            1.ts
            #EXTINF:1,
            #EXT-X-GAP
            #EXT-X-KEY:METHOD=AES-128,URI="k"
            2.ts
            #EXT-X-PART:DURATION=1,URI="3a.ts",GAP=YES
            #EXT-X-PART:DURATION=1,URI="3b.ts",GAP=NO
            #EXTINF:1,
            3.ts
            #EXT-X-GAP\r
            4.ts
            """
        #expect(HLSPlaylist(Array(text.utf8)).resources == ["1.ts", "k", "3b.ts", "3.ts"])
    }

    @Test("A byte order mark is no address, and no byte of one in Latin-1 is lost")
    func charsets() {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let text = Array("#EXTM3U\n#EXT-X-MAP:URI=\"".utf8) + [0xE9]
        let bytes = mark + text + Array("\"\n caf".utf8) + [0xE9] + Array(".ts\n\u{e9}.ts\n".utf8)
        #expect(HLSPlaylist(bytes).resources == ["%E9", "caf%E9.ts", "\u{e9}.ts"])
    }

    @Test("A media playlist has segments, keys and initialisation sections, each once")
    func resources() {
        let media = HLSPlaylist(
            Array(
                """
                #EXTM3U
                #EXT-X-MAP:URI="init.mp4",BYTERANGE="720@0"
                #EXT-X-KEY:METHOD=AES-128,URI="k.key"
                #EXTINF:4,
                #EXT-X-BYTERANGE:100@0
                all.m4s
                #EXTINF:4,
                #EXT-X-BYTERANGE:100@100
                all.m4s
                  b.m4s\u{20}
                """.utf8
            )
        )
        #expect(media.variants.isEmpty)
        #expect(media.resources == ["init.mp4", "k.key", "all.m4s", "b.m4s"])
    }
}
