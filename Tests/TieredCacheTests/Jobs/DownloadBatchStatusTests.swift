import Testing

@testable import TieredCache

@Suite("The status of a batch", .timeLimit(.minutes(10)))
struct DownloadBatchStatusTests {
    private func part(
        _ state: DownloadState,
        _ bytes: Int64,
        of total: Int64?,
        rate: Double? = nil,
        id: Int = 1
    ) -> DownloadStatus {
        DownloadStatus(
            id: DownloadID(number: numericCast(id)),
            url: "http://origin.example/a",
            state: state,
            priority: .normal,
            bytes: bytes,
            total: total,
            bytesPerSecond: rate
        )
    }

    @Test("Adds up bytes, totals and the rates of those that run")
    func sums() {
        let status = DownloadBatch.Status([
            part(.running, 10, of: 100, rate: 5), part(.running, 20, of: 50, rate: 1),
            part(.queued, 0, of: 7, rate: 1000), part(.finished, 3, of: 3),
            part(.cancelled, 1, of: 2),
        ])
        #expect(status.downloads == 5 && status.finished == 1 && status.failed == 1)
        #expect(status.bytes == 34 && status.total == 162)
        #expect(status.bytesPerSecond == 6)
    }

    @Test("Says which downloads failed, and why; a cancelled one has no error")
    func failures() {
        let first = DownloadProblem(CacheError(.httpStatus, "gone", status: 410))
        let second = DownloadProblem(CacheError(.timedOut, "silent"))
        let status = DownloadBatch.Status([
            part(.failed(first), 0, of: nil, id: 7), part(.cancelled, 1, of: 2),
            part(.finished, 3, of: 3), part(.failed(second), 0, of: 1, id: 9),
        ])
        #expect(status.failed == 3 && status.isEnd)
        #expect(status.failures.map(\.id.number) == [7, 9])
        #expect(status.failures.map(\.problem) == [first, second])
        #expect(status.failures.first?.url == "http://origin.example/a")
        #expect(status.failures.first?.problem.error.status == 410)
    }

    @Test("One unknown length makes the total unknown, wherever it stands")
    func unknown() {
        #expect(
            DownloadBatch.Status([part(.running, 1, of: nil), part(.running, 1, of: 2)]).total
                == nil
        )
        #expect(
            DownloadBatch.Status([part(.running, 1, of: 2), part(.running, 1, of: nil)]).total
                == nil
        )
    }

    @Test("Lengths whose sum no number holds are no total")
    func overflow() {
        let parts = [part(.running, 1, of: .max), part(.running, 1, of: .max)]
        #expect(DownloadBatch.Status(parts).total == nil)
    }
}
