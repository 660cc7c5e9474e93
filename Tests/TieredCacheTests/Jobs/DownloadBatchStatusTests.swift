import Testing

@testable import TieredCache

@Suite("The status of a batch", .timeLimit(.minutes(10)))
struct DownloadBatchStatusTests {
    private func part(
        _ state: DownloadState,
        _ bytes: Int64,
        of total: Int64?,
        rate: Double? = nil
    ) -> DownloadStatus {
        DownloadStatus(
            id: DownloadID(number: 1),
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
