import HTTPTypes

/// The language that a request prefers to all others (RFC 9110 §12.5.4).
///
/// | `Accept-Language` | preferred |
/// | --- | --- |
/// | `fr;q=0.5, de` | `de` |
/// | `en, de` | none: two have the highest weight |
/// | `*` | none |
enum PreferredLanguage {
    /// The language range in lower case; nil where several share the highest weight, or none has
    /// one that can be read.
    static func of(_ request: HTTPFields) -> String? {
        guard let list = SelectingFieldNormalisation.value("accept-language", of: request) else {
            return nil
        }
        var best: (range: String?, weight: Double) = (nil, 0)
        for element in list.split(separator: ",") {
            let parts = element.split(separator: ";", maxSplits: 1)
            guard let range = parts.first, let weight = weight(parts.dropFirst().first) else {
                return nil
            }
            if weight > best.weight {
                best = (String(range), weight)
            } else if weight == best.weight {
                best.range = nil
            }
        }
        return best.range == "*" ? nil : best.range
    }

    /// The weight of a language range; nil if it cannot be read.
    private static func weight(_ parameter: Substring?) -> Double? {
        guard let parameter else { return 1 }
        guard parameter.hasPrefix("q="), let weight = Double(parameter.dropFirst(2)),
            (0...1).contains(weight)
        else { return nil }
        return weight
    }
}
