import Testing

@testable import TieredCache
@testable import TieredCacheCLI

@Suite(.timeLimit(.minutes(10)))
struct NoticeLineTests {
    private func text(_ notice: DownloadNotice) -> String? {
        NoticeLine(notice, name: "film.mp4")?.text
    }

    private func retry(after delay: Duration) -> DownloadNotice {
        .retrying(
            DownloadRetry(
                delay: delay,
                attempts: 1,
                maximumAttempts: 5,
                reason: "the origin closed the connection too early"
            )
        )
    }

    @Test("Plain sentences for what holds a download up")
    func sentences() {
        #expect(
            text(retry(after: .milliseconds(1500)))
                == "film.mp4: the origin closed the connection too early; trying again in 1.5 s "
                + "(attempt 2 of 5)"
        )
        #expect(text(retry(after: .seconds(2)))?.contains("in 2 s (") == true)
        #expect(text(retry(after: .zero))?.contains("trying again now") == true)
        #expect(text(.started(offset: 3 << 20)) == "film.mp4: going on at 3.0 MiB")
        #expect(text(.waitingForNetwork)?.contains("no network") == true)
        #expect(text(.restarted)?.contains("again") == true)
    }

    @Test("No words where nothing is held up")
    func silence() {
        #expect(text(.started(offset: 0)) == nil)
        #expect(text(.queued) == nil)
    }

    @Test("A job in words and in JSON, on one line whatever its reason holds")
    func report() throws {
        var report = DownloadReport(
            id: "00000000000000ab",
            url: "http://a/b",
            state: "paused",
            bytes: 1 << 20,
            total: 2 << 20,
            attempts: 3,
            error: nil
        )
        #expect(report.line == "paused  1.0 MiB of 2.0 MiB  http://a/b")
        (report.total, report.error) = (nil, "two\nlines")
        #expect(report.line == "paused  1.0 MiB of ?  http://a/b  (two lines)")
        #expect(
            try JSONLine.text(of: report)
                == #"{"attempts":3,"bytes":1048576,"error":"two\nlines","id":"00000000000000ab","#
                + #""owner":null,"state":"paused","total":null,"url":"http://a/b"}"#
        )
        (report.state, report.error, report.owner) = ("queued", nil, 7)
        #expect(
            report.line
                == "queued  1.0 MiB of ?  http://a/b  "
                + "(process 7 owns the directory and may be running it)"
        )
        #expect(try JSONLine.text(of: report).contains(#""owner":7,"#))
    }
}
