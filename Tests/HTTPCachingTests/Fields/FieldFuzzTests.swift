import HTTPTypes
import TestParts
import Testing

@testable import HTTPCaching

/// Millions of unusual field values: no parser traps, what is accepted can be
/// written and read again, and unknown words change nothing.
///
/// A case is one value given to one law. `make fuzz` has libFuzzer try the same laws, optimised,
/// with many millions of values; here they are as many as a build without optimisation has time
/// for.
@Suite(.timeLimit(.minutes(10)))
struct FieldFuzzTests {
    /// Texts for each of the two halves, of which every one goes to all laws.
    private static let rounds = TestCases.all ? 8_000 : 500

    @Test("Field values of all kinds keep the laws", .tags(.seeded), arguments: [1, 2] as [UInt64])
    func laws(seed: UInt64) {
        var mutator = FieldMutator(seed: seed)
        var cases = 0
        for round in 0..<Self.rounds {
            let text = mutator.next()
            for law in FieldLaws.all where !law.holds(text) {
                Issue.record(
                    "seed \(seed), round \(round): \(law.name) of \(text.debugDescription)"
                )
                return
            }
            cases += FieldLaws.all.count
        }
        #expect(cases >= (TestCases.all ? 150_000 : 9_000))
    }

    @Test("Each kind of value is reached: some are accepted, some refused")
    func reach() {
        var mutator = FieldMutator(seed: 3)
        var accepted: [String: Int] = [:]
        let rounds = 4_000
        for _ in 0..<rounds {
            let text = mutator.next()
            if EntityTag(text) != nil { accepted["tag", default: 0] += 1 }
            if RangeRequest(text) != nil { accepted["range", default: 0] += 1 }
            if HTTPDate.parse(text, now: received) != nil { accepted["date", default: 0] += 1 }
            if StructuredDictionary(text) != nil { accepted["dictionary", default: 0] += 1 }
            if (try? ContentRange(text)) != nil { accepted["part", default: 0] += 1 }
            if ResponseCacheControl(text).maxAge != nil { accepted["control", default: 0] += 1 }
        }
        #expect(accepted.count == 6)
        #expect(accepted.values.allSatisfy { $0 > 5 && $0 < rounds }, "\(accepted)")
    }
}
