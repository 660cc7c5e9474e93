import Testing

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct DASHTemplateTests {
    private static let values = DASHTemplate.Values(
        representation: "r/1",
        bandwidth: 64_000,
        number: 42,
        time: 900_000
    )

    @Test(
        "Values are put in, numbers padded; what is no template has no address",
        arguments: [
            ("a.m4s", "a.m4s"), ("$RepresentationID$/$Number$.m4s", "r/1/42.m4s"),
            ("$Number%05d$-$Time%01d$", "00042-900000"), ("$Bandwidth%08d$", "00064000"),
            ("a$$b", "a$b"), ("$Number", nil), ("$Unknown$", nil), ("$Number%5d$", nil),
            ("$Number%0xd$", nil), ("$Number%099d$", nil), ("$RepresentationID%02d$", nil),
            ("", ""),
        ] as [(String, String?)]
    )
    func addresses(_ template: String, _ address: String?) {
        #expect(DASHTemplate(template).address(Self.values) == address)
    }
}
