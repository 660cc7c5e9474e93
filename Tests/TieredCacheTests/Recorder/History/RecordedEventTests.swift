import HTTPCaching
import Testing

@testable import TieredCache

@Suite("Lines of the event log", .timeLimit(.minutes(10)))
struct RecordedEventTests {
    private static let entry = String(repeating: "0af9", count: 8)
    private static let time = WallTime(seconds: 1_767_225_600)

    @Test(
        "a line is read back as it was written",
        arguments: MediaCache.RecordedEvent.Kind.allCases
    )
    func roundTrip(kind: MediaCache.RecordedEvent.Kind) {
        for reason in [nil, "stale"] {
            for entry in [nil, Self.entry] {
                for url in [nil, "https://example.com/a?..."] {
                    let event = MediaCache.RecordedEvent(
                        time: Self.time,
                        kind: kind,
                        reason: reason,
                        entry: entry,
                        count: 17,
                        url: url
                    )
                    #expect(event.line.last == "\n")
                    #expect(MediaCache.RecordedEvent(line: event.line.dropLast()) == event)
                }
            }
        }
    }

    @Test("whatever a key holds, a line stays one line of six words")
    func hostileURL() {
        for url in ["http://a/b c\nd\r\u{0}\u{2028}ä-", "", String(repeating: "é", count: 5000)] {
            let event = MediaCache.RecordedEvent(
                time: Self.time,
                kind: .missed,
                entry: Self.entry,
                url: url
            )
            let line = event.line
            #expect(line.split(separator: "\n").count == 1)
            #expect(line.utf8.count < 1024)
            #expect(MediaCache.RecordedEvent(line: line.dropLast())?.kind == .missed)
        }
    }

    @Test("what was torn or is none is left out, every prefix of a line included")
    func torn() {
        let event = MediaCache.RecordedEvent(
            time: Self.time,
            kind: .evicted,
            reason: "trimmed",
            entry: Self.entry,
            count: 4096,
            url: "http://a/b"
        )
        let line = event.line.dropLast()
        // A cut within the last word cannot be seen: it is still a URL.
        let lastWord = line.lastIndex(of: " ") ?? line.startIndex
        for end in line.indices where end <= lastWord {
            #expect(MediaCache.RecordedEvent(line: line[..<end]) == nil, "\(line[..<end])")
        }
        for wrong in ["", "x", "- - missed - 0 -", line + " more", "\u{0}\u{0}\u{0}"] {
            #expect(MediaCache.RecordedEvent(line: wrong) == nil, "\(wrong)")
        }
    }
}
