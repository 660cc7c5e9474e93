import HTTPCaching
import HTTPTypes
import Testing

@Suite("ContentLength", .timeLimit(.minutes(10)))
struct ContentLengthTests {
    @Test(
        "Valid values",
        arguments: [
            (["0"], 0), (["42"], 42), (["42", "42"], 42), (["42, 42"], 42), ([" 042 "], 42),
            (["4611686018427387903"], ByteOffset.limit - 1),
        ] as [([String], Int64)]
    )
    func valid(values: [String], expected: Int64) throws {
        #expect(try ContentLength.parse(in: fields(values)) == expected)
    }

    @Test(
        "Invalid values",
        arguments: [
            ["42", "43"], ["42, 43"], ["-1"], ["+1"], ["1.0"], [""], ["0x10"], ["4 2"], ["42,"],
            ["4611686018427387904"], ["9223372036854775807"], ["99999999999999999999"],
        ] as [[String]]
    )
    func invalid(values: [String]) {
        #expect(throws: FieldSyntaxError.self) { try ContentLength.parse(in: fields(values)) }
    }

    @Test("No field, no length")
    func missing() throws {
        #expect(try ContentLength.parse(in: [:]) == nil)
    }

    private func fields(_ values: [String]) -> HTTPFields {
        var fields = HTTPFields()
        fields[values: .contentLength] = values
        return fields
    }
}
