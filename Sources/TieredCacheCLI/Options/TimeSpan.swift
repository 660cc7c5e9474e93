import ArgumentParser

/// A duration on the command line: `90s`, `15m`, `2h`, `3d`, or a number of seconds.
struct TimeSpan: ExpressibleByArgument, Equatable {
    let duration: Duration

    init(_ duration: Duration) {
        self.duration = duration
    }

    init?(argument: String) {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        let unit = argument.last.flatMap { units[$0] }
        let digits = unit == nil ? argument[...] : argument.dropLast()
        guard !digits.isEmpty, digits.utf8.count < 12, let number = Int64(digits), number >= 0
        else { return nil }
        duration = .seconds(number * (unit ?? 1))
    }

    var defaultValueDescription: String { "\(duration.components.seconds)s" }
}
