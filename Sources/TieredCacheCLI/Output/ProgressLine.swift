import TieredCache

/// One line about a download in progress, fitted to a terminal.
///
/// `film.mp4   42% [======>        ]  12.3 MiB of 29.0 MiB  5.1 MiB/s  0:03 left  from network`.
/// Parts that do not fit are omitted, the bar first, then the name.
struct ProgressLine: Equatable {
    /// The name of the download, usually the last component of the path.
    var name: String
    /// Body bytes so far.
    var bytes: Int64
    /// Body bytes in all, if known.
    var total: Int64?
    /// The recent rate in bytes per second, if known.
    var rate: Double?
    /// The estimated remaining seconds, if known.
    var secondsLeft: Double?
    /// The source of the last bytes, if known.
    var source: ByteSource?

    private static let widestName = 24
    private static let widestBar = 30
    private static let narrowestBar = 8

    /// The line for a terminal, at most `width` columns wide, without a line break.
    func text(width: Int) -> String {
        let figures = [
            amount, rate.map { "\(Self.size(Int64(min(max(0, $0), 0x1p62))))/s" }, timeLeft,
            source.map { "from \($0.rawValue)" },
        ]
        .compactMap { $0 }.joined(separator: "  ")
        guard figures.count < width else { return String(figures.prefix(max(0, width))) }
        let room = width - figures.count - 2
        let name = shortName
        guard name.count <= room else { return figures }
        return name + middle(room - name.count) + "  " + figures
    }

    /// Percentage and bar, as far as they fit.
    private func middle(_ room: Int) -> String {
        guard let fraction else { return "" }
        let percent = Int(fraction * 100)
        let text = "  " + String(repeating: " ", count: percent < 10 ? 2 : percent < 100 ? 1 : 0)
        let percentage = text + "\(percent)%"
        guard percentage.count <= room else { return "" }
        let bar = min(Self.widestBar, room - percentage.count - 3)
        guard bar >= Self.narrowestBar else { return percentage }
        return percentage + " [" + Self.bar(fraction, width: bar) + "]"
    }

    private static func bar(_ fraction: Double, width: Int) -> String {
        let filled = Int(fraction * Double(width))
        guard filled < width else { return String(repeating: "=", count: width) }
        return String(repeating: "=", count: filled) + ">"
            + String(repeating: " ", count: width - filled - 1)
    }

    private var fraction: Double? {
        guard let total else { return nil }
        guard total > 0 else { return 1 }
        return min(1, max(0, Double(bytes) / Double(total)))
    }

    private var amount: String {
        guard let total else { return Self.size(bytes) }
        return "\(Self.size(bytes)) of \(Self.size(total))"
    }

    /// `0:03 left`, `1:02:03 left`; nothing from a hundred hours on, where the estimate is
    /// meaningless.
    private var timeLeft: String? {
        guard let secondsLeft, secondsLeft >= 0, secondsLeft < 360_000 else { return nil }
        let seconds = Int(secondsLeft.rounded(.up))
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
        let tail = Self.twoDigits(seconds % 60)
        guard hours > 0 else { return "\(minutes):\(tail) left" }
        return "\(hours):\(Self.twoDigits(minutes)):\(tail) left"
    }

    /// The name without control characters, which would move the cursor; a long name is cut at its
    /// beginning.
    private var shortName: String {
        let name = String(name.map { $0.isASCII && !($0 >= " " && $0 < "\u{7F}") ? "?" : $0 })
        guard name.count > Self.widestName else { return name }
        return "..." + name.suffix(Self.widestName - 3)
    }

    private static func twoDigits(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }

    /// `999 B`, `1.0 KiB`, `12.3 MiB`: at most four digits before the unit.
    static func size(_ bytes: Int64) -> String {
        guard bytes >= 1000 else { return "\(bytes) B" }
        var tenths = Double(bytes) / 102.4
        var units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][...]
        while tenths.rounded() >= 10_000, units.count > 1 {
            tenths /= 1024
            units = units.dropFirst()
        }
        let shown = Int(tenths.rounded())
        return "\(shown / 10).\(shown % 10) \(units.first ?? "")"
    }
}
