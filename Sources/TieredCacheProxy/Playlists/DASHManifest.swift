/// The resources that a DASH manifest refers to, for prefetching (ISO/IEC 23009-1).
///
/// The input is not trusted: invalid parts are ignored. For a live presentation only the segments
/// of timelines and lists are named, not those whose number depends on the clock.
package struct DASHManifest: Sendable {
    /// One of several forms of the same content.
    package struct Representation: Hashable, Sendable {
        package let id: String
        /// Bits per second; 0 if not given.
        package let bandwidth: Int
        /// Base URLs from the outermost to the innermost, each relative to the one before.
        package let bases: [String]
        let segments: DASHSegments
        /// The duration of its period in seconds; nil if unknown.
        let seconds: Double?

        /// The addresses of the segments, relative to the last base; an empty one is the base
        /// itself.
        ///
        /// Computed at each call, because a hostile manifest may describe gigabytes of addresses.
        ///
        /// - Parameter limit: the most addresses.
        /// - Returns: the addresses; at most 16 MiB and one more address.
        package func addresses(atMost limit: Int) -> [String] {
            let values = DASHTemplate.Values(representation: id, bandwidth: bandwidth)
            return segments.addresses(values, seconds: seconds, atMost: limit)
        }
    }

    /// The representations of each adaptation set.
    package private(set) var sets: [[Representation]] = []

    /// The values that an element passes on to its children.
    private struct Level {
        let element: String
        var base: String?
        var segments: DASHSegments
        var id = ""
        var bandwidth = 0
        /// Whether the list is its own, and not inherited.
        var hasList = false
    }

    private var isDynamic = false
    private var levels: [Level] = []
    private var seconds: Double?
    private var periods: [DASHPeriods.Period]
    private var presentation: Double?
    private var awaitsBase = false
    /// The number of open elements that are nested too deep and are ignored.
    private var ignored = 0
    private static let maximumDepth = 64
    /// The most representations: more than a day of short periods has.
    private static let maximumCount = 20_000
    private var count = 0

    /// Reads a manifest.
    package init(_ bytes: [UInt8]) {
        let all = DASHPeriods(bytes)
        (periods, presentation) = (all.periods.reversed(), all.duration)
        for piece in XMLScanner(bytes) {
            switch piece {
            case .start(let name, let attributes, let isEmpty, _):
                let element = String(decoding: name.local, as: UTF8.self)
                begin(element, values: XMLValues(bytes, attributes: attributes))
                if isEmpty { end() }
            case .end:
                end()
            case .text(let range):
                guard awaitsBase, levels.count >= 2 else { continue }
                let text = XMLValues.decoded(bytes[range]).trimmed
                // Of several base URLs the first is used; the others are alternatives.
                let outer = levels.count - 2
                if levels[outer].base == nil, !text.isEmpty { levels[outer].base = text }
            }
        }
    }

    private mutating func begin(_ element: String, values: XMLValues) {
        awaitsBase = element == "BaseURL"
        guard levels.count < Self.maximumDepth else {
            ignored += 1
            awaitsBase = false
            return
        }
        var level = Level(element: element, segments: DASHSegments())
        // Other elements do not inherit. A second reference to a list would copy it for each
        // element.
        if Self.heirs.contains(element), let outer = levels.last {
            level.segments = outer.segments
            level.hasList = outer.hasList
        }
        switch element {
        case "MPD":
            isDynamic = values["type"] == "dynamic"
        case "Period":
            let period = periods.popLast()
            seconds = isDynamic ? nil : period?.seconds ?? presentation
        case "AdaptationSet":
            sets.append([])
        case "Representation":
            level.id = values["id"] ?? ""
            level.bandwidth = values.integer("bandwidth").map { Int(clamping: $0) } ?? 0
        case "SegmentTemplate", "SegmentList", "SegmentBase":
            take(element, values: values, into: &level)
        case "Initialization":
            setOuter { $0.segments.initialization = values["sourceURL"] ?? "" }
        case "SegmentURL":
            let address = values["media"] ?? ""
            setOuter { outer in
                if !outer.hasList { outer.segments.list = [] }
                outer.hasList = true
                guard outer.segments.list.count < DASHSegments.maximumCount else { return }
                outer.segments.list.append(address)
            }
        case "SegmentTimeline":
            setOuter { $0.segments.timeline = [] }
        case "S":
            let span = DASHSegments.Span(
                time: values.integer("t"),
                duration: values.integer("d") ?? 0,
                repeats: values.integer("r") ?? 0
            )
            // The timeline is a child of the template or the list.
            guard levels.count >= 2,
                levels[levels.count - 2].segments.timeline.count < DASHSegments.maximumCount
            else { break }
            levels[levels.count - 2].segments.timeline.append(span)
        default:
            break
        }
        levels.append(level)
    }

    /// The elements that inherit segment information.
    private static let heirs: Set<String> = [
        "AdaptationSet", "Period", "Representation", "SegmentBase", "SegmentList",
        "SegmentTemplate", "SegmentTimeline",
    ]

    private mutating func setOuter(_ change: (inout Level) -> Void) {
        guard !levels.isEmpty else { return }
        change(&levels[levels.count - 1])
    }

    private func take(_ element: String, values: XMLValues, into level: inout Level) {
        level.hasList = false
        level.segments.isCut = element != "SegmentBase"
        if let media = values["media"] { level.segments.media = media }
        if let address = values["initialization"] { level.segments.initialization = address }
        if let number = values.integer("timescale") { level.segments.timescale = number }
        if let number = values.integer("duration") { level.segments.duration = number }
        if let number = values.integer("startNumber") { level.segments.startNumber = number }
        if let number = values.integer("endNumber") { level.segments.endNumber = number }
        if let number = values.integer("presentationTimeOffset") {
            level.segments.timeOffset = number
        }
    }

    private mutating func end() {
        awaitsBase = false
        guard ignored == 0 else {
            ignored -= 1
            return
        }
        guard let level = levels.popLast() else { return }
        switch level.element {
        case "SegmentTemplate", "SegmentList", "SegmentBase":
            setOuter { outer in
                outer.segments = level.segments
                outer.hasList = level.hasList
            }
        case "Representation":
            guard !sets.isEmpty, count < Self.maximumCount else { return }
            count += 1
            let bases = (levels + [level]).compactMap(\.base)
            sets[sets.count - 1].append(
                Representation(
                    id: level.id,
                    bandwidth: level.bandwidth,
                    bases: bases,
                    segments: level.segments,
                    seconds: seconds
                )
            )
        default:
            break
        }
    }
}

extension VariantChoice {
    /// The chosen representations: one choice for each adaptation set.
    package func representations(in manifest: DASHManifest) -> [DASHManifest.Representation] {
        manifest.sets.flatMap { set -> [DASHManifest.Representation] in
            let sorted = set.sorted { $0.bandwidth < $1.bandwidth }
            switch self {
            case .all: return set
            case .highest: return sorted.suffix(1)
            case .lowest: return Array(sorted.prefix(1))
            case .upTo(let bandwidth):
                let best = sorted.last { $0.bandwidth <= bandwidth } ?? sorted.first
                return best.map { [$0] } ?? []
            }
        }
    }
}

extension String {
    fileprivate var trimmed: String {
        let start = drop { $0.isWhitespace }
        return String(start.reversed().drop { $0.isWhitespace }.reversed())
    }
}
