/// The durations of the periods of a manifest; a period may end where the next begins.
struct DASHPeriods {
    struct Period {
        var start: Double?
        /// The duration in seconds; nil if unknown.
        var seconds: Double?
    }

    private(set) var periods: [Period] = []
    /// The duration of the presentation in seconds; nil if not given.
    private(set) var duration: Double?

    init(_ bytes: [UInt8]) {
        for case .start(let name, let attributes, _, _) in XMLScanner(bytes) {
            let values = XMLValues(bytes, attributes: attributes)
            if name.local.elementsEqual("MPD".utf8) {
                duration = values["mediaPresentationDuration"].flatMap(Self.seconds)
            } else if name.local.elementsEqual("Period".utf8) {
                periods.append(
                    Period(
                        start: values["start"].flatMap(Self.seconds),
                        seconds: values["duration"].flatMap(Self.seconds)
                    )
                )
            }
        }
        var start = 0.0
        for index in periods.indices {
            start = periods[index].start ?? start
            let next = index + 1 < periods.count ? periods[index + 1].start : duration
            if periods[index].seconds == nil, let next, next >= start {
                periods[index].seconds = next - start
            }
            start += periods[index].seconds ?? 0
        }
    }

    /// Parses a duration such as `P1DT2H3M4.5S` (ISO 8601); nil for anything else, also for months
    /// and years.
    static func seconds(_ text: String) -> Double? {
        guard text.hasPrefix("P") else { return nil }
        var isTime = false
        var number = ""
        var result = 0.0
        for character in text.dropFirst() {
            if character == "T" {
                isTime = true
            } else if character.isASCII, character.isNumber || character == "." {
                number.append(character)
            } else {
                let unit: Double
                switch (character, isTime) {
                case ("D", false): unit = 86_400
                case ("H", true): unit = 3600
                case ("M", true): unit = 60
                case ("S", true): unit = 1
                default: return nil
                }
                guard let value = Double(number) else { return nil }
                result += value * unit
                number = ""
            }
        }
        return number.isEmpty && result < 1e9 ? result : nil
    }
}
