/// Sizes as people write them: `64MiB`, `2GiB`, `500000`, `1.5GB`.
package enum ByteCountFormat {
    /// The units by their text in lower case; a bare letter is binary, as the GNU tools have it.
    private static let units: [(text: String, bytes: Int64)] = [
        ("", 1), ("b", 1),
        ("k", 1 << 10), ("kib", 1 << 10), ("kb", 1_000),
        ("m", 1 << 20), ("mib", 1 << 20), ("mb", 1_000_000),
        ("g", 1 << 30), ("gib", 1 << 30), ("gb", 1_000_000_000),
        ("t", 1 << 40), ("tib", 1 << 40), ("tb", 1_000_000_000_000),
    ]

    /// Reads a size in bytes.
    ///
    /// A decimal number, then at most one space, then a unit in any case: `B`, `KiB`, `MiB`, `GiB`,
    /// `TiB` (or the first letter alone) are powers of 1024, `kB`, `MB`, `GB`, `TB` powers of 1000,
    /// none is bytes. `1.5GiB` is 1610612736. A fraction of a byte is dropped.
    ///
    /// - Parameter text: the size as written.
    /// - Returns: the number of bytes, zero or more.
    /// - Throws: ``CacheError/Code/invalidArgument`` for a negative number, an unknown unit, a size
    ///   beyond 2^63 - 1 bytes, or anything else that is not a size.
    package static func parse(_ text: String) throws(CacheError) -> Int64 {
        guard !text.utf8.starts(with: "-".utf8) else {
            throw invalid(text, reason: "it is negative")
        }
        let number = text.utf8.prefix { isDigit($0) || $0 == UInt8(ascii: ".") }
        let unit = try unit(of: text.utf8.dropFirst(number.count), in: text)
        let parts = number.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard let whole = parts.first, !whole.isEmpty, parts.count <= 2,
            parts.last?.isEmpty == false
        else {
            throw invalid(text, reason: "it does not begin with a number such as 64 or 1.5")
        }
        guard parts.count == 1 || unit > 1 else {
            throw invalid(text, reason: "a fraction of a byte cannot be kept")
        }
        return try sum(
            whole,
            fraction: parts.count == 2 ? parts[1] : "".utf8[...],
            unit: unit,
            in: text
        )
    }

    /// Writes a size for people, with one decimal where it needs one: `999 B`, `64 MiB`, `1.5 GiB`.
    ///
    /// Rounded down, so that the text never exceeds the size.
    package static func format(_ bytes: Int64) -> String {
        let names = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        guard bytes.magnitude >= 1_024 else { return "\(bytes) B" }
        // Ten bits to a unit: the position of the highest bit tells it without a logarithm.
        let index = min((63 - bytes.magnitude.leadingZeroBitCount) / 10, names.count)
        let unit = UInt64(1) << UInt64(index * 10)
        let whole = bytes.magnitude / unit
        let tenth = bytes.magnitude % unit * 10 / unit
        let sign = bytes < 0 ? "-" : ""
        return "\(sign)\(whole)\(tenth == 0 ? "" : ".\(tenth)") \(names[index - 1])"
    }

    private static func unit(
        of text: Substring.UTF8View,
        in whole: String
    ) throws(CacheError) -> Int64 {
        let name = text.first == UInt8(ascii: " ") ? text.dropFirst() : text
        let lowercased = String(decoding: name, as: UTF8.self).lowercased()
        guard let unit = units.first(where: { $0.text == lowercased }) else {
            throw invalid(
                whole,
                reason: "its unit is none of B, KiB, MiB, GiB, TiB, kB, MB, GB, TB"
            )
        }
        return unit.bytes
    }

    private static func sum(
        _ whole: Substring.UTF8View,
        fraction: Substring.UTF8View,
        unit: Int64,
        in text: String
    ) throws(CacheError) -> Int64 {
        let tooLarge = invalid(text, reason: "it is larger than \(Int64.max) bytes")
        guard let units = Int64(String(decoding: whole, as: UTF8.self)) else { throw tooLarge }
        let (product, overflow) = units.multipliedReportingOverflow(by: unit)
        let (sum, overflow2) = product.addingReportingOverflow(part(fraction, of: unit))
        guard !overflow, !overflow2 else { throw tooLarge }
        return sum
    }

    /// `0.fraction` of `unit`; exact, because it divides digit by digit from the right.
    private static func part(_ fraction: Substring.UTF8View, of unit: Int64) -> Int64 {
        // Digits beyond the 15th are worth less than a byte of a tebibyte.
        var numerator: UInt64 = 0
        var denominator: UInt64 = 1
        for digit in fraction.prefix(15) {
            numerator = numerator * 10 + UInt64(digit - UInt8(ascii: "0"))
            denominator *= 10
        }
        // 128 bits wide: 10^15 times 2^40 does not fit into 64.
        let product = numerator.multipliedFullWidth(by: unit.magnitude)
        return Int64(denominator.dividingFullWidth(product).quotient)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func invalid(_ text: String, reason: String) -> CacheError {
        CacheError(
            .invalidArgument,
            "cannot use '\(text)' as a size: \(reason); write 64MiB, 2GiB or 500000"
        )
    }
}
