import Testing

@testable import TieredCache

@Suite("Host line", .timeLimit(.minutes(10)))
struct HostLineTests {
    /// A line kept as a plain list.
    private struct Model {
        var places: [HostQueue.Place] = []
        var closedHosts: Set<String> = []

        func first() -> HostQueue.Place? {
            places.filter { !closedHosts.contains($0.host) }.min()
        }
    }

    @Test(arguments: 0..<10)
    func `It is always led by the first transfer of an open host`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var line = HostQueue()
        var model = Model()
        for step in 0..<3_000 {
            let host = "host\(Int.random(in: 0..<4, using: &random))"
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4:
                let place = HostQueue.Place(
                    transfer: TransferID(number: UInt64(step)),
                    host: host,
                    position: .init(
                        rank: Int.random(in: 0..<5, using: &random),
                        sequence: UInt64(step)
                    )
                )
                model.places.append(place)
                line.insert(place.transfer, host: host, at: place.position)
            case 4..<6:
                guard let place = model.places.randomElement(using: &random) else { continue }
                model.places.removeAll { $0 == place }
                line.remove(place.transfer)
            case 6..<8:
                guard let first = model.first() else { continue }
                model.places.removeAll { $0 == first }
                line.remove(first.transfer)
            case 8:
                model.closedHosts.insert(host)
                line.setHost(host, isOpen: false)
            default:
                model.closedHosts.remove(host)
                line.setHost(host, isOpen: true)
            }
            #expect(line.first() == model.first(), "seed \(seed), step \(step)")
            #expect(line.count == model.places.count, "seed \(seed), step \(step)")
        }
    }

    @Test
    func `A transfer that moves back and forth leaves no pile of places behind`() {
        var line = HostQueue()
        let transfer = TransferID(number: 1)
        for turn in 0..<10_000 {
            line.remove(transfer)
            line.insert(transfer, host: "h", at: .init(rank: turn % 5, sequence: 1))
        }
        #expect(line.first()?.position.rank == 9_999 % 5)
        #expect(line.heapCount < 100)
    }
}
