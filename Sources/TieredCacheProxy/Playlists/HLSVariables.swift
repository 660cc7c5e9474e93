package import HTTPCaching

/// The variables that a playlist defines, to be put where `{$NAME}` stands (RFC 8216bis §4.3).
///
/// | `EXT-X-DEFINE` with | value |
/// | --- | --- |
/// | `NAME`, `VALUE` | the value |
/// | `IMPORT` | that of the master playlist which led here |
/// | `QUERYPARAM` | that parameter of the playlist's URL, escapes decoded |
///
/// Of all of them 256 definitions count, and 64 KiB of names and values.
///
/// Foreign input: a name that was not defined before its use, or a value that is no part of any
/// address, leaves the text as it is, for the player to judge.
package struct HLSVariables: Hashable, Sendable {
    /// Longer addresses than this are nobody's, and many variables in one could make it huge.
    private static let maximumLength = 16 << 10
    /// Of the definitions that are looked at; of names and values together, in bytes.
    private static let maximumCount = 256
    private static let maximumSize = 64 << 10
    private static let definition = "#EXT-X-DEFINE:"

    private var values: [String: [UInt8]] = [:]
    private var definitions = 0
    /// What names and values take, in bytes.
    private(set) var size = 0

    /// No variables.
    package init() {}

    /// The variables that a playlist has at its end, as for its children to import.
    ///
    /// - Parameters:
    ///   - bytes: the playlist.
    ///   - location: the URL that it came from.
    ///   - imported: those of the master playlist; empty where there is none.
    package init(_ bytes: [UInt8], at location: TargetURI, importing imported: HLSVariables) {
        for line in PlaylistLines(bytes) {
            define(bytes[line], at: location, importing: imported)
        }
    }

    /// Whether there is none.
    package var isEmpty: Bool { values.isEmpty }

    /// Takes in a line, if it is a definition; of several of one name the first counts.
    ///
    /// - Returns: the value, where the line has defined something.
    @discardableResult
    mutating func define(
        _ line: ArraySlice<UInt8>,
        at location: TargetURI,
        importing imported: HLSVariables
    ) -> [UInt8]? {
        guard definitions < Self.maximumCount, line.starts(with: Self.definition.utf8) else {
            return nil
        }
        definitions += 1
        let attributes = HLSAttributes(line.dropFirst(Self.definition.utf8.count))
        let name: String
        let value: [UInt8]?
        if let own = attributes.value("NAME") {
            name = own
            value = attributes.value("VALUE").map { Array($0.utf8) }
        } else if let foreign = attributes.value("IMPORT") {
            name = foreign
            value = imported.values[foreign]
        } else if let parameter = attributes.value("QUERYPARAM") {
            name = parameter
            value = location.queryParameter(parameter)
        } else {
            return nil
        }
        guard let value, values[name] == nil, value.isPartOfAddress,
            size + name.utf8.count + value.count <= Self.maximumSize
        else { return nil }
        size += name.utf8.count + value.count
        values[name] = value
        return value
    }

    /// The text with the values in place of the names; each byte is looked at a few times at most.
    ///
    /// - Parameters:
    ///   - text: an address, as it stands in the playlist.
    ///   - budget: of the playlist.
    /// - Returns: nil where there is nothing to replace, or not all of it is known.
    func substituted(
        _ text: some Collection<UInt8>,
        _ budget: inout PlaylistBudget
    ) -> [UInt8]? {
        guard !values.isEmpty else { return nil }
        var result: [UInt8] = []
        var isChanged = false
        var rest = text[...]
        while let mark = rest.firstIndex(of: UInt8(ascii: "{")) {
            result += rest[..<mark]
            rest = rest[mark...]
            guard rest.dropFirst().first == UInt8(ascii: "$") else {
                result.append(UInt8(ascii: "{"))
                rest = rest.dropFirst()
                continue
            }
            // Without an end here there is none further on either.
            guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else { break }
            let name = String(decoding: rest[..<end].dropFirst(2), as: UTF8.self)
            guard let value = values[name], !budget.isExceeded else { return nil }
            budget.spend(work: value.count)
            result += value
            isChanged = true
            rest = rest[end...].dropFirst()
            guard result.count <= Self.maximumLength else { return nil }
        }
        return isChanged ? result + rest : nil
    }
}

extension [UInt8] {
    /// Whether it could stand in a line or between quotes without ending them.
    fileprivate var isPartOfAddress: Bool {
        count <= 4096 && allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") }
    }
}

extension TargetURI {
    /// The decoded value of the first parameter of that name in the query; nil where there is none.
    fileprivate func queryParameter(_ name: String) -> [UInt8]? {
        guard let query else { return nil }
        for part in Array(query.utf8).split(separator: UInt8(ascii: "&")) {
            let key = part.prefix { $0 != UInt8(ascii: "=") }
            guard key.endIndex < part.endIndex, key.decodingEscapes.elementsEqual(name.utf8) else {
                continue
            }
            return part[(key.endIndex + 1)...].decodingEscapes
        }
        return nil
    }
}

extension ArraySlice<UInt8> {
    /// The bytes with `%XX` decoded; what is no escape stays.
    fileprivate var decodingEscapes: [UInt8] {
        var result: [UInt8] = []
        var rest = self
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%"), rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else {
                result.append(byte)
                continue
            }
            result.append(value)
            rest = rest.dropFirst(2)
        }
        return result
    }
}
