import Testing
import TieredCache

@testable import TieredCacheCLI

@Suite("Endings", .timeLimit(.minutes(10)))
struct EndingTests {
    @Test(
        "Exit codes of the engine's errors",
        arguments: [
            (.invalidArgument, 64), (.invalidURL, 64), (.notCached, 66), (.originFailed, 69),
            (.httpStatus, 69), (.timedOut, 69), (.representationChanged, 69),
            (.rangeNotSatisfiable, 69), (.localStorage, 74), (.formatTooNew, 74), (.notOwner, 75),
            (.notStorable, 74), (.cancelled, 130), (.shutDown, 74),
        ] as [(CacheError.Code, Int32)]
    )
    func codes(code: CacheError.Code, expected: Int32) {
        #expect(Ending(CacheError(code, "x")).status.rawValue == expected)
    }

    @Test("Messages are one line")
    func oneLine() {
        let ending = Ending(CommandFailure(.localFailed, message: "a\r\n\nb\u{1B}[2Kc\t"))
        #expect(ending == Ending(status: .localFailed, output: "a b [2Kc"))
        #expect(Ending(CancellationError()).status == .interrupted)
    }
}
