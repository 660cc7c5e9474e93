import CTieredCache
import Testing

@testable import TieredCacheC

/// What a program compares before it uses the library.
@Suite(.timeLimit(.minutes(1)))
struct VersionTests {
    @Test("The numbers of the header and of the library are the same")
    func numbers() {
        #expect(tiered_abi() == TIERED_ABI)
        let version = String(cString: tiered_version()).split(separator: ".")
        #expect(version.count == 3 && Int(version[0]) != nil && Int(version[1]) != nil)
    }

    @Test("Each status has a text of its own, and so has an unknown one")
    func texts() {
        let texts = (-18...1).map { String(cString: tiered_status_text($0)) }
        #expect(Set(texts).count == 19)
        #expect(texts.first == "unknown status" && texts.last == "unknown status")
    }
}
