import SystemPackage
import TieredCache

/// Measures the rate of a download and decides when to draw a new line.
///
/// The rate is an exponential average over about three seconds, which neither jumps nor lags for
/// long. Time is an argument; the meter reads no clock.
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

    /// Records the bytes so far.
    ///
    /// - Returns: the line to draw; nil if the last one is less than a tenth of a second old and
    ///   the source has not changed.
    mutating func update(
        name: String,
        bytes: Int64,
        total: Int64?,
        source: ByteSource? = nil,
        now: MonotonicTime
    ) -> ProgressLine? {
        let isNews = source != lastSource
        lastSource = source
        guard measure(bytes, at: now) || isNews else { return nil }
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

    /// Updates the rate, unless the last update is less than a tenth of a second old.
    private mutating func measure(_ bytes: Int64, at now: MonotonicTime) -> Bool {
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

/// Draws a progress line on a terminal; does nothing if standard error is no terminal.
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
        // One column less, because a full line makes some terminals move to the next one.
        draw("\r\u{1B}[2K" + line.text(width: Terminal.width(descriptor) - 1))
        isDrawn = true
    }

    /// Removes the line, so that later output starts on an empty one.
    mutating func clear() {
        guard isDrawn else { return }
        draw("\r\u{1B}[2K")
        isDrawn = false
    }

    /// Writes a message on a separate line above the bar; does nothing without a bar.
    ///
    /// A single write, so that it may be called from another thread than the bar's; the bar is
    /// drawn again at the next update.
    func say(_ text: String) {
        guard isEnabled else { return }
        draw("\r\u{1B}[2K\(text)\n")
    }

    private func draw(_ text: String) {
        do {
            try descriptor.writeAll(text.utf8)
        } catch {
            // A lost progress line does not fail the download.
        }
    }
}
