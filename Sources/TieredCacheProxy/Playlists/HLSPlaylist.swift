package import HTTPCaching

/// The resources that an HLS playlist refers to, for prefetching (RFC 8216).
package struct HLSPlaylist: Hashable, Sendable {
    /// One rendition of the whole presentation.
    package struct Variant: Hashable, Sendable {
        package let address: String
        /// Bits per second; 0 if not given.
        package let bandwidth: Int
        /// The groups of alternative renditions that belong to it.
        package let groups: Set<String>
    }

    /// Audio, subtitles or video that belongs to variants.
    package struct Rendition: Hashable, Sendable {
        package let address: String
        package let group: String
    }

    /// The variants; empty for a media playlist.
    package private(set) var variants: [Variant] = []
    package private(set) var renditions: [Rendition] = []
    /// I-frame playlists, for fast forward and rewind.
    package private(set) var pictureLists: [String] = []
    /// The resources that belong to every choice: segments, keys, initialisation sections.
    package private(set) var resources: [String] = []
    /// The resources that are keys.
    package private(set) var keys: [String] = []
    /// Whether the playlist names more than the limit allows.
    package private(set) var isCutShort = false
    private var seen: Set<String> = []
    private var budget: PlaylistBudget
    private let limit: Int

    /// Reads a playlist; invalid lines are ignored.
    ///
    /// - Parameters:
    ///   - bytes: the playlist.
    ///   - location: the final URL of the playlist; nil to ignore its variables.
    ///   - imported: the variables of the master playlist.
    ///   - limit: the most addresses of each kind.
    package init(
        _ bytes: [UInt8],
        at location: TargetURI? = nil,
        importing imported: HLSVariables = HLSVariables(),
        atMost limit: Int = 100_000
    ) {
        self.limit = limit
        budget = PlaylistBudget(forLength: bytes.count)
        var variables = HLSVariables()
        var pending: HLSAttributes<ArraySlice<UInt8>>?
        var isGap = false
        for line in PlaylistLines(bytes) where !budget.isExceeded {
            let text = bytes[line]
            guard text.first == UInt8(ascii: "#") else {
                let address = TargetURI.reference(text).trimmingSpaces
                guard !address.isEmpty else { continue }
                if !isGap { take(applied(variables, to: address), attributes: pending) }
                (pending, isGap) = (nil, false)
                continue
            }
            // draft-pantos-hls-rfc8216bis §4.4.4.7: what follows does not exist.
            if text.starts(with: "#EXT-X-GAP".utf8) { isGap = true }
            guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { continue }
            if let location { variables.define(text, at: location, importing: imported) }
            let attributes = HLSAttributes(text[(colon + 1)...])
            switch String(decoding: text[..<colon], as: UTF8.self) {
            case "#EXT-X-STREAM-INF": pending = attributes
            case "#EXT-X-MEDIA": takeRendition(attributes, variables: variables)
            case "#EXT-X-I-FRAME-STREAM-INF":
                guard let address = attributes.value("URI") else { break }
                add(applied(variables, to: address), to: \.pictureLists)
            case "#EXT-X-KEY", "#EXT-X-SESSION-KEY":
                guard let address = attributes.value("URI") else { break }
                let key = applied(variables, to: address)
                add(key)
                add(key, to: \.keys)
            case "#EXT-X-PART" where attributes.value("GAP") == "YES": break
            case "#EXT-X-MAP", "#EXT-X-SESSION-DATA", "#EXT-X-PART":
                if let address = attributes.value("URI") { add(applied(variables, to: address)) }
            default: break
            }
        }
        if budget.isExceeded { isCutShort = true }
    }

    /// Substitutes the variables in an address, at the expense of the budget.
    private mutating func applied(_ variables: HLSVariables, to address: String) -> String {
        guard let whole = variables.substituted(address.utf8, budget: &budget) else {
            return address
        }
        budget.spend(output: whole.count)
        return String(decoding: whole, as: UTF8.self)
    }

    /// Appends to a list, unless that is full.
    private mutating func add<Element>(
        _ element: Element,
        to list: WritableKeyPath<HLSPlaylist, [Element]>
    ) {
        guard self[keyPath: list].count < limit else {
            isCutShort = true
            return
        }
        self[keyPath: list].append(element)
    }

    private mutating func take(
        _ address: String,
        attributes: HLSAttributes<ArraySlice<UInt8>>?
    ) {
        guard let attributes else { return add(address) }
        let groups = ["AUDIO", "VIDEO", "SUBTITLES"].compactMap { name in
            attributes.value(name).map { "\(name):\($0)" }
        }
        add(
            Variant(
                address: address,
                bandwidth: attributes.value("BANDWIDTH").flatMap { Int($0) } ?? 0,
                groups: Set(groups)
            ),
            to: \.variants
        )
    }

    private mutating func takeRendition(
        _ attributes: HLSAttributes<ArraySlice<UInt8>>,
        variables: HLSVariables
    ) {
        guard let address = attributes.value("URI"), let type = attributes.value("TYPE"),
            let group = attributes.value("GROUP-ID")
        else { return }
        let whole = applied(variables, to: address)
        add(Rendition(address: whole, group: "\(type):\(group)"), to: \.renditions)
    }

    private mutating func add(_ address: String) {
        // Byte ranges of one file count as one resource.
        guard !seen.contains(address) else { return }
        if seen.count < limit { seen.insert(address) }
        add(address, to: \.resources)
    }
}

/// The variants to fetch of a presentation that has several: of a master playlist of HLS, or of
/// each adaptation set of DASH.
public enum VariantChoice: Hashable, Sendable {
    /// All of them.
    case all
    /// The one with the highest bandwidth.
    case highest
    /// The one with the lowest bandwidth.
    case lowest
    /// The best variant of at most so many bits per second; the lowest if there is none.
    case upTo(Int)

    /// Reads `all`, `highest`, `lowest`, or a number of bits per second.
    package init?(_ text: String) {
        switch text {
        case "all": self = .all
        case "highest": self = .highest
        case "lowest": self = .lowest
        default:
            guard let bandwidth = Int(text), bandwidth > 0 else { return nil }
            self = .upTo(bandwidth)
        }
    }

    /// The addresses of the chosen media playlists.
    package func addresses(in playlist: HLSPlaylist) -> [String] {
        let sorted = playlist.variants.sorted { $0.bandwidth < $1.bandwidth }
        let chosen: [HLSPlaylist.Variant]
        switch self {
        case .all: chosen = playlist.variants
        case .highest: chosen = sorted.suffix(1)
        case .lowest: chosen = Array(sorted.prefix(1))
        case .upTo(let bandwidth):
            let best = sorted.last { $0.bandwidth <= bandwidth } ?? sorted.first
            chosen = best.map { [$0] } ?? []
        }
        let groups = chosen.reduce(into: Set<String>()) { $0.formUnion($1.groups) }
        let renditions = playlist.renditions.filter { groups.contains($0.group) }
        let pictures = self == .all ? playlist.pictureLists : []
        return chosen.map(\.address) + renditions.map(\.address) + pictures
    }
}

extension String {
    fileprivate var trimmingSpaces: String {
        let isSpace = { (character: Character) in character == " " || character == "\t" }
        return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
    }
}
