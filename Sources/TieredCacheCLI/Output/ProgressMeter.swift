import SystemPackage
import TieredCache

/// Follows a download's bytes and says when a new line is worth drawing.
///
/// The rate is an exponential average over about three seconds, so that it neither jumps nor lies
/// for long. Time is an argument; the meter reads no clock.
struct ProgressMeter {
    private static let interval = Duration.milliseconds(100)
    private static let window = 3.0

    private var rate: Double?
    private var lastBytes: Int64 = 0
    private var lastTime: MonotonicTime
    private var lastSource: ByteSource?

    init(start: MonotonicTime) {
        lastTime = start
    }

    /// Takes note of the bytes so far.
    ///
    /// - Returns: the line to draw; nil when the last one is less than a tenth of a second old and
    ///   the bytes come from where they came from then.
    mutating func update(
        name: String,
        bytes: Int64,
        total: Int64?,
        source: ByteSource? = nil,
        now: MonotonicTime
    ) -> ProgressLine? {
        let isNews = source != lastSource
        lastSource = source
        guard measure(bytes, now) || isNews else { return nil }
        let left = total.map { Double($0 - bytes) }
        let secondsLeft = rate.flatMap { rate in rate > 0 ? left.map { $0 / rate } : nil }
        return ProgressLine(
            name: name,
            bytes: bytes,
            total: total,
            rate: rate,
            secondsLeft: secondsLeft,
            source: source
        )
    }

    /// Takes the rate, unless that was done a moment ago.
    private mutating func measure(_ bytes: Int64, _ now: MonotonicTime) -> Bool {
        let elapsed = lastTime.duration(to: now)
        guard elapsed >= Self.interval else { return false }
        let seconds = elapsed.inSeconds
        let current = Double(bytes - lastBytes) / seconds
        let weight = min(1, seconds / Self.window)
        rate = rate.map { $0 + (current - $0) * weight } ?? current
        lastBytes = bytes
        lastTime = now
        return true
    }
}

/// Draws lines over one another on a terminal; does nothing elsewhere.
struct ProgressBar {
    private let descriptor = FileDescriptor.standardError
    private let isEnabled: Bool
    private var meter: ProgressMeter
    private var isDrawn = false

    /// - Parameters:
    ///   - isWanted: false for `--quiet`.
    ///   - start: the present instant.
    init(isWanted: Bool, start: MonotonicTime) {
        isEnabled = isWanted && Terminal.isTerminal(descriptor)
        meter = ProgressMeter(start: start)
    }

    mutating func update(
        name: String,
        bytes: Int64,
        total: Int64?,
        source: ByteSource?,
        now: MonotonicTime
    ) {
        guard isEnabled,
            let line = meter.update(
                name: name,
                bytes: bytes,
                total: total,
                source: source,
                now: now
            )
        else { return }
        // One column less: a full line would move some terminals to the next.
        draw("\r\u{1B}[2K" + line.text(width: Terminal.width(descriptor) - 1))
        isDrawn = true
    }

    /// Removes the line, so that what follows starts on a clean one.
    mutating func clear() {
        guard isDrawn else { return }
        draw("\r\u{1B}[2K")
        isDrawn = false
    }

    /// Says something in a line of its own, above the bar; only where there is a bar.
    ///
    /// One write, so that it may come from another thread than the bar's; the bar is drawn again
    /// with the next bytes.
    func say(_ text: String) {
        guard isEnabled else { return }
        draw("\r\u{1B}[2K\(text)\n")
    }

    private func draw(_ text: String) {
        do {
            try descriptor.writeAll(text.utf8)
        } catch {
            // A lost progress line is no reason to fail the download.
        }
    }
}
