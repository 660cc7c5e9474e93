import Testing
import TieredCache

@testable import TieredCacheCLI

@Suite("Progress", .timeLimit(.minutes(10)))
struct ProgressTests {
    private let line = ProgressLine(
        name: "film.mp4",
        bytes: 42 << 20,
        total: 100 << 20,
        rate: 5.5 * 1_048_576,
        secondsLeft: 10.2
    )

    @Test("A line with everything")
    func whole() {
        #expect(
            line.text(width: 100)
                == "film.mp4   42% [============>                 ]  "
                + "42.0 MiB of 100.0 MiB  5.5 MiB/s  0:11 left"
        )
    }

    @Test("No line is wider than the terminal", arguments: 0...120)
    func width(columns: Int) {
        for total in [nil, 0, 1, 100 << 20, Int64.max] {
            for rate in [nil, 0, 1e30] as [Double?] {
                for seconds in [nil, 0, 359_999, 1e12, -1] as [Double?] {
                    var line = line
                    line.total = total
                    line.rate = rate
                    line.secondsLeft = seconds
                    line.name = String(repeating: "n", count: 80)
                    #expect(line.text(width: columns).count <= columns)
                }
            }
        }
    }

    @Test("What does not fit goes: the bar, the percentage, the name")
    func narrow() {
        let figures = "42.0 MiB of 100.0 MiB  5.5 MiB/s  0:11 left"
        #expect(line.text(width: 60) == "film.mp4   42%  " + figures)
        #expect(line.text(width: 53) == "film.mp4  " + figures)
        #expect(line.text(width: 50) == figures)
        #expect(line.text(width: 10) == "42.0 MiB o")
    }

    @Test("Without a total there is neither bar nor time")
    func unknownTotal() {
        let line = ProgressLine(name: "a", bytes: 999, total: nil, rate: nil, secondsLeft: nil)
        #expect(line.text(width: 80) == "a  999 B")
    }

    @Test("A name cannot move the cursor")
    func hostileName() {
        let line = ProgressLine(name: "a\u{1B}[2Jb\n", bytes: 1, total: nil)
        #expect(line.text(width: 80) == "a?[2Jb?  1 B")
    }

    @Test(
        "Sizes",
        arguments: [
            (0, "0 B"), (999, "999 B"), (1000, "1.0 KiB"), (1024, "1.0 KiB"),
            (1536, "1.5 KiB"), (1_048_576, "1.0 MiB"), (1_023_897, "999.9 KiB"),
            (1_048_575, "1.0 MiB"), (5 << 30, "5.0 GiB"), (.max, "8.0 EiB"),
        ] as [(Int64, String)]
    )
    func sizes(bytes: Int64, expected: String) {
        #expect(ProgressLine.size(bytes) == expected)
    }

    @Test("The source of the bytes is named, and a change of it is drawn at once")
    func source() throws {
        var meter = ProgressMeter(start: time(0))
        func text(_ bytes: Int64, _ source: ByteSource, at instant: Int64) -> String? {
            meter.update(name: "a", bytes: bytes, total: 1000, source: source, now: time(instant))?
                .text(width: 100)
        }
        #expect(text(100, .disk, at: 1)?.hasSuffix("100 B of 1.0 KiB  from disk") == true)
        #expect(text(200, .disk, at: 2) == nil)
        #expect(text(300, .network, at: 3)?.hasSuffix("from network") == true)
        #expect(text(400, .network, at: 4) == nil)
        #expect(text(500, .network, at: 1000)?.contains("500 B/s  0:01 left  from net") == true)
        #expect(text(600, .memory, at: 1001)?.hasSuffix("from memory") == true)
    }

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    @Test("The meter draws ten times a second and smooths the rate")
    func meter() throws {
        var meter = ProgressMeter(start: time(0))
        #expect(meter.update(name: "a", bytes: 5, total: 1000, now: time(99)) == nil)
        let firstLine = meter.update(name: "a", bytes: 100, total: 1000, now: time(1000))
        let first = try #require(firstLine)
        #expect(first.rate == 100)
        #expect(first.secondsLeft == 9)
        let secondLine = meter.update(name: "a", bytes: 500, total: 1000, now: time(2000))
        let second = try #require(secondLine)
        #expect(try #require(second.rate) == 200)
        #expect(second.secondsLeft == 2.5)
    }

    @Test("A meter without progress promises nothing")
    func stalledMeter() throws {
        var meter = ProgressMeter(start: time(0))
        let update = meter.update(name: "a", bytes: 0, total: 10, now: time(1000))
        let line = try #require(update)
        #expect(line.rate == 0)
        #expect(line.secondsLeft == nil)
    }
}
