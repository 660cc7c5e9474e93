import HTTPCaching
import Testing

@Suite(.timeLimit(.minutes(10)))
struct StatusCodeTests {
    @Test("What is asked again at once, what a job may ask again later, and what is final")
    func passing() {
        let transient = [408, 425, 429, 500, 502, 503, 504, 522, 524]
        #expect((100..<600).filter(StatusCode.isTransient) == transient)
        #expect((100..<500).filter(StatusCode.mayPass) == [408, 425, 429])
        #expect((500..<600).allSatisfy(StatusCode.mayPass))
    }
}
