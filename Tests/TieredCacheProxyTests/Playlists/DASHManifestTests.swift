import Testing

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct DASHManifestTests {
    private func manifest(_ text: String) -> DASHManifest { DASHManifest(Array(text.utf8)) }

    @Test("A template by number, the levels inside take over what they do not say")
    func numbers() {
        let found = manifest(
            """
            <?xml version="1.0"?><!-- <Representation id="no"/> -->
            <MPD mediaPresentationDuration="PT0H0M9.5S"><BaseURL>http://h/a&amp;b/</BaseURL>
            <BaseURL>http://second/</BaseURL>
            <Period><AdaptationSet>
            <SegmentTemplate timescale="1000" duration="2000" startNumber="5"
             initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/$Number%03d$$$.m4s"/>
            <Representation id="lo" bandwidth="100"/>
            <Representation id="hi" bandwidth="900"><BaseURL> hi/ </BaseURL>
            <SegmentTemplate startNumber="1" endNumber="2"/></Representation>
            </AdaptationSet></Period></MPD>
            """
        )
        #expect(found.sets.count == 1)
        let (low, high) = (found.sets[0][0], found.sets[0][1])
        #expect(low.bases == ["http://h/a&b/"])
        #expect(
            low.addresses(atMost: 100)
                == ["lo/init.mp4"] + (5...9).map { "lo/00\($0)$.m4s" }
        )
        #expect(high.bases == ["http://h/a&b/", "hi/"])
        #expect(high.addresses(atMost: 100) == ["hi/init.mp4", "hi/001$.m4s", "hi/002$.m4s"])
    }

    @Test("Base URLs of all levels, each relative to the one before")
    func bases() {
        let found = manifest(
            """
            <MPD><BaseURL>a/</BaseURL><Period><BaseURL>/b/</BaseURL><AdaptationSet>
            <BaseURL>c/</BaseURL><Representation id="r"><BaseURL>https://d.example/e</BaseURL>
            </Representation><Representation id="s"/></AdaptationSet></Period>
            <Period><AdaptationSet><Representation id="t"/></AdaptationSet></Period></MPD>
            """
        )
        #expect(
            found.sets.flatMap { $0 }.map(\.bases)
                == [["a/", "/b/", "c/", "https://d.example/e"], ["a/", "/b/", "c/"], ["a/"]]
        )
    }

    @Test("A timeline by time: gaps, repeats, and repeats to the end")
    func timelines() {
        let found = manifest(
            """
            <MPD mediaPresentationDuration="PT20S"><Period start="PT0S"><AdaptationSet>
            <Representation id="v" bandwidth="7">
            <SegmentTemplate timescale="10" media="$Bandwidth$-$Time$-$Number$"
             presentationTimeOffset="100">
            <SegmentTimeline><S t="100" d="20" r="1"/><S d="30"/><S t="200" d="40" r="-1"/>
            </SegmentTimeline></SegmentTemplate></Representation>
            </AdaptationSet></Period></MPD>
            """
        )
        #expect(
            found.sets[0][0].addresses(atMost: 100) == [
                "7-100-1", "7-120-2", "7-140-3", "7-200-4", "7-240-5", "7-280-6",
            ]
        )
    }

    @Test("Lists, single files, and several periods")
    func lists() {
        let found = manifest(
            """
            <MPD mediaPresentationDuration="PT10S"><Period>
            <AdaptationSet><SegmentList><Initialization sourceURL="i.mp4"/>
            <SegmentURL media="1.m4s"/><SegmentURL media="2.m4s"/></SegmentList>
            <Representation id="a"/>
            <Representation id="b"><SegmentList><SegmentURL media="b.m4s"/></SegmentList>
            </Representation></AdaptationSet>
            <AdaptationSet><Representation id="c"><BaseURL>c.mp4</BaseURL><SegmentBase/>
            </Representation></AdaptationSet></Period>
            <Period start="PT6S"><AdaptationSet>
            <SegmentTemplate duration="2" media="$Number$"/><Representation id="d"/>
            </AdaptationSet></Period></MPD>
            """
        )
        let addresses = found.sets.map { $0.map { $0.addresses(atMost: 100) } }
        #expect(
            addresses == [
                [["i.mp4", "1.m4s", "2.m4s"], ["i.mp4", "b.m4s"]], [[""]], [["1", "2"]],
            ]
        )
        #expect(found.sets[1][0].bases == ["c.mp4"])
    }

    @Test("Choices are made in each adaptation set")
    func choices() {
        let found = manifest(
            """
            <MPD><Period><AdaptationSet><Representation id="v3" bandwidth="300"/>
            <Representation id="v1" bandwidth="100"/><Representation id="v2" bandwidth="200"/>
            </AdaptationSet><AdaptationSet><Representation id="a" bandwidth="64"/></AdaptationSet>
            </Period></MPD>
            """
        )
        func ids(_ choice: VariantChoice) -> [String] {
            choice.representations(in: found).map(\.id)
        }
        #expect(ids(.all) == ["v3", "v1", "v2", "a"])
        #expect(ids(.highest) == ["v3", "a"])
        #expect(ids(.lowest) == ["v1", "a"])
        #expect(ids(.upTo(250)) == ["v2", "a"])
        #expect(ids(.upTo(50)) == ["v1", "a"])
    }

    @Test(
        "Durations",
        arguments: [
            ("PT1H2M3.5S", 3723.5), ("P1DT1S", 86_401), ("PT0S", 0), ("P", 0), ("PT5", nil),
            ("1S", nil), ("P1Y", nil), ("PTS", nil), ("PT1e9S", nil),
        ] as [(String, Double?)]
    )
    func durations(_ text: String, _ seconds: Double?) {
        #expect(DASHPeriods.seconds(text) == seconds)
    }

    @Test("A running presentation, and numbers that would go on for ever, end somewhere")
    func hostile() {
        let running = manifest(
            "<MPD type='dynamic' mediaPresentationDuration='PT9S'><Period><AdaptationSet>"
                + "<SegmentTemplate duration='1' media='$Number$'/><Representation/>"
                + "</AdaptationSet></Period></MPD>"
        )
        #expect(running.sets[0][0].addresses(atMost: .max).isEmpty)
        for attributes in [
            "duration='1' timescale='9223372036854775807'",
            "duration='9223372036854775807' startNumber='9223372036854775807'",
            "duration='1' endNumber='9223372036854775807' startNumber='-9223372036854775808'",
            "duration='0'", "timescale='-1' duration='5'", "duration='x'",
        ] {
            let found = manifest(
                "<MPD mediaPresentationDuration='PT999999999S'><Period><AdaptationSet>"
                    + "<SegmentTemplate \(attributes) media='$Number$'/><Representation/>"
                    + "</AdaptationSet></Period></MPD>"
            )
            #expect(found.sets[0][0].addresses(atMost: .max).count <= 100_000, "\(attributes)")
        }
        let times = manifest(
            "<MPD><Period><AdaptationSet><SegmentTemplate media='$Time$'><SegmentTimeline>"
                + "<S t='9223372036854775806' d='9223372036854775807' r='99'/><S d='-5' r='9'/>"
                + "<S t='-9223372036854775808' d='1' r='-1'/><S t='9223372036854775807' d='1'/>"
                + "</SegmentTimeline></SegmentTemplate><Representation/></AdaptationSet></Period></MPD>"
        )
        #expect(times.sets[0][0].addresses(atMost: .max).count <= 100_001)
    }

    @Test("Many representations, long templates and deep nesting take little memory")
    func bounds() {
        let template = "<SegmentTemplate duration='1' endNumber='99999' media='$Number$'/>"
        let many = manifest(
            "<MPD><Period><AdaptationSet>\(template)"
                + String(repeating: "<Representation/>", count: 5000)
                + "</AdaptationSet></Period></MPD>"
        )
        #expect(many.sets[0].count == 5000)
        #expect(many.sets[0].allSatisfy { $0.addresses(atMost: 10).count == 10 })
        let long = String(repeating: "x", count: 1 << 20)
        let wide = manifest(
            "<MPD><Period><AdaptationSet>"
                + template.replacing("$Number$", with: "\(long)$Number$")
                + "<Representation/></AdaptationSet></Period></MPD>"
        )
        #expect(wide.sets[0][0].addresses(atMost: .max).count == 16)
        let deep = manifest(
            "<MPD>" + String(repeating: "<a>", count: 200_000)
                + "<Period><AdaptationSet><Representation/></AdaptationSet></Period>"
                + String(repeating: "</a>", count: 200_000)
                + "<Period><AdaptationSet><Representation id='b'/></AdaptationSet></Period></MPD>"
        )
        #expect(deep.sets.map { $0.map(\.id) } == [["b"]])
    }

    @Test("A timeline to the end of a period counts in a scale that makes sense")
    func timescales() {
        for scale in ["-9223372036854775808", "0", "-1", "9223372036854775807"] {
            let found = manifest(
                "<MPD mediaPresentationDuration='PT10S'><Period><AdaptationSet>"
                    + "<SegmentTemplate media='$Time$' timescale='\(scale)'><SegmentTimeline>"
                    + "<S d='1' r='-1'/></SegmentTimeline></SegmentTemplate>"
                    + "<Representation/></AdaptationSet></Period></MPD>"
            )
            #expect(found.sets[0][0].addresses(atMost: 100).isEmpty, "\(scale)")
        }
    }

    @Test("Foreign bytes of any kind are taken", arguments: [1, 2, 3] as [UInt64])
    func garbage(_ seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let words = [
            "<MPD>", "</MPD>", "<Period", "<AdaptationSet>", "<Representation id='a'>", "/>", ">",
            "<SegmentTemplate media='$Number%09d$' duration='1' ", "<S d='1' r='3'/>", "<S t='-1'",
            "<SegmentTimeline>", "<SegmentURL media='x'/>", "</", "<BaseURL>&#x41;&bad;", "'", "\"",
            "<Initialization/>", "</Representation>", "&", "$", "endNumber='9'", "</BaseURL>",
        ]
        for _ in 0..<2000 {
            let count = Int(random.next() % 24)
            let text = (0..<count).map { _ in words[Int(random.next() % UInt64(words.count))] }
                .joined()
            let found = manifest(text)
            #expect(found.sets.count <= 24, "seed \(seed): \(text)")
        }
    }
}
