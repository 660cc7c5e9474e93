import TestParts
import Testing
import TieredCacheTesting

@Suite("Scripts", .tags(.realTime), .timeLimit(.minutes(10)))
struct OriginScriptTests {
    private func statuses(_ script: OriginScript, _ count: Int) -> [Int?] {
        (0..<count).map { index in
            guard case .status(let status, _) = script.behaviour(forRequest: index).response else {
                return nil
            }
            return status
        }
    }

    @Test("Steps follow each other and the last one stays")
    func order() {
        let script = OriginScript.first(2, .status(503)).then(1, .status(500)).then(.status(404))
        #expect(statuses(script, 5) == [503, 503, 500, 404, 404])
        #expect(statuses(.first(1, .status(503)), 3) == [503, nil, nil])
        #expect(statuses(OriginScript(.status(410)), 2) == [410, 410])
        #expect(statuses(OriginScript().then(0, .status(410)), 1) == [nil])
    }
}
