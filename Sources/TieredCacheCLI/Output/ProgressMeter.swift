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

    init(start: MonotonicTime) {
        lastTime = start
    }

    /// Takes note of the bytes so far.
    ///
    /// - Returns: the line to draw, or nil when the last one is less than a tenth of a second old.
    mutating func update(
        name: String,
        bytes: Int64,
        total: Int64?,
        now: MonotonicTime
    ) -> ProgressLine? {
        let elapsed = lastTime.duration(to: now)
        guard elapsed >= Self.interval else { return nil }
        let seconds = elapsed.inSeconds
        let current = Double(bytes - lastBytes) / seconds
        let weight = min(1, seconds / Self.window)
        rate = rate.map { $0 + (current - $0) * weight } ?? current
        lastBytes = bytes
        lastTime = now
        let left = total.map { Double($0 - bytes) }
        let secondsLeft = rate.flatMap { rate in rate > 0 ? left.map { $0 / rate } : nil }
        return ProgressLine(
            name: name,
            bytes: bytes,
            total: total,
            rate: rate,
            secondsLeft: secondsLeft
        )
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

    mutating func update(name: String, bytes: Int64, total: Int64?, now: MonotonicTime) {
        guard isEnabled,
            let line = meter.update(name: name, bytes: bytes, total: total, now: now)
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
