import Testing

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct MovieBoxLocatorTests {
    /// A file of boxes that are given by type and size; sizes above 32 bits are written large.
    private struct File {
        var headers: [Int64: [UInt8]] = [:]
        var length: Int64 = 0

        init(_ boxes: [(type: String, size: Int64)]) {
            for box in boxes {
                headers[length] = Self.header(box.type, box.size)
                length += box.size
            }
        }

        static func header(_ type: String, _ size: Int64) -> [UInt8] {
            let isLarge = size > UInt32.max
            let short = UInt32(isLarge ? 1 : size)
            var bytes = withUnsafeBytes(of: short.bigEndian) { [UInt8]($0) } + Array(type.utf8)
            if isLarge { bytes += withUnsafeBytes(of: size.bigEndian) { [UInt8]($0) } }
            return bytes + [UInt8](repeating: 0, count: 16 - bytes.count)
        }

        func locate() -> MovieBoxLocator.Step {
            var locator = MovieBoxLocator(completeLength: length)
            var step = locator.start()
            while case .readHeader(let offset) = step {
                step = locator.didRead(headers[offset] ?? [])
            }
            return step
        }
    }

    @Test func findsMoovAtTheFront() {
        let file = File([("ftyp", 32), ("moov", 5000), ("mdat", 1 << 20)])
        #expect(file.locate() == .found(32..<5032))
    }

    @Test func findsMoovBehindMediaDataOfManyGigabytes() {
        let mdat: Int64 = 6 << 30
        let file = File([("ftyp", 32), ("free", 8), ("mdat", mdat), ("moov", 70_000)])
        #expect(file.locate() == .found(mdat + 40..<mdat + 70_040))
    }

    @Test func moovThatClaimsMoreThanTheFileEndsWithTheFile() {
        var file = File([("ftyp", 32), ("moov", 100)])
        file.headers[32] = File.header("moov", 1 << 40)
        #expect(file.locate() == .found(32..<132))
    }

    @Test func aBoxThatReachesToTheEndHasNothingBehindIt() {
        var file = File([("ftyp", 32), ("mdat", 1000)])
        file.headers[32] = File.header("mdat", 0)
        #expect(file.locate() == .absent)
    }

    @Test(arguments: ["RIFF", "\u{1A}E\u{DF}", "ID3\u{3}", "<htm"])
    func otherFilesAreNotSearched(_ type: String) {
        #expect(File([(type, 400), ("moov", 100)]).locate() == .absent)
    }

    @Test func hostileSizesEndTheSearch() {
        for size: [UInt8] in [
            [0, 0, 0, 2], [0, 0, 0, 7], [0xFF, 0xFF, 0xFF, 0xFF], [0, 0, 0, 1],
        ] {
            var file = File([("ftyp", 32), ("mdat", 1000), ("moov", 16)])
            file.headers[32] = size + Array("mdat".utf8) + [UInt8](repeating: 0xFF, count: 8)
            #expect(file.locate() == .absent, "size \(size)")
        }
        #expect(File([]).locate() == .absent)
        var locator = MovieBoxLocator(completeLength: 100)
        #expect(locator.didRead([0, 0]) == .absent)
    }

    @Test func endlessTinyBoxesEndTheSearch() {
        var locator = MovieBoxLocator(completeLength: .max)
        var step = locator.start()
        var reads = 0
        while case .readHeader = step {
            step = locator.didRead(File.header("free", 8))
            reads += 1
        }
        #expect(step == .absent)
        #expect(reads <= 1001)
    }
}
