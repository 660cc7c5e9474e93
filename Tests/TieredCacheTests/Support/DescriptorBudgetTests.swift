import Testing

@testable import TieredCache

@Suite("The budget of descriptors", .timeLimit(.minutes(1)))
struct DescriptorBudgetTests {
    @Test("Connections, downloads and the runtime have their parts at every limit")
    func parts() {
        for limit in Array(1...200) + [256, 1024, 4096, 65_536, 1 << 30] {
            for downloads in [1, 6, 256, 4096] {
                let budget = DescriptorBudget(limit: limit, downloads: downloads)
                #expect((1...downloads).contains(budget.maximumDownloads), "\(limit)")
                #expect(budget.fileCeiling > 0 && budget.maximumConnections >= 4, "\(limit)")
                guard limit >= 38 else { continue }
                #expect(limit - budget.ceiling >= 8, "\(limit)")
                // What connects to origins has room where files have taken all of theirs.
                #expect(budget.ceiling - budget.fileCeiling >= downloadsAndUploads(budget))
                guard limit >= 64 else { continue }
                let all = budget.maximumConnections + budget.maximumIdleFiles
                #expect(24 + all + 4 * budget.maximumDownloads <= budget.ceiling, "\(limit)")
            }
        }
    }

    private func downloadsAndUploads(_ budget: DescriptorBudget) -> Int {
        budget.maximumDownloads + budget.maximumDownloads / 2
    }

    @Test("Usual limits")
    func usual() {
        let small = DescriptorBudget(limit: 64, downloads: 256)
        #expect(small.ceiling == 56 && small.fileCeiling == 50 && small.maximumIdleFiles == 4)
        #expect(small.maximumDownloads == 4 && small.maximumConnections == 12)
        #expect(DescriptorBudget(limit: 1024, downloads: 6).maximumDownloads == 6)
        #expect(DescriptorBudget(limit: 1024, downloads: 256).maximumDownloads == 117)
        #expect(DescriptorBudget(limit: 4096, downloads: 256).maximumDownloads == 256)
    }
}
