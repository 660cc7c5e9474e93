import TieredCache
import TieredCacheImages

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Posters in a list that is scrolled down and up again, and all of them as a sheet.
///
///     Gallery SHEET.png <URLS
@main
struct Gallery {
    static let cell = (width: 96, height: 54)
    static let columns = 40
    /// How many are on the screen at once, and how many will be next.
    static let window = 40

    let posters: [ImageRequest]
    let pictures: ImagePipeline<PosterDecoder>
    let begin = ContinuousClock.now
    var isFirst = true
    var missing = 0
    var sheet: ContactSheet

    static func main() async {
        guard CommandLine.arguments.count == 2 else {
            print("usage: Gallery SHEET.png <URLS")
            exit(64)
        }
        do {
            let cache = try MediaCache()
            var gallery = Gallery(try urls().map { try ImageRequest($0, size: size) }, of: cache)
            await gallery.scroll()
            try gallery.sheet.write(to: CommandLine.arguments[1])
            await cache.shutdown()
        } catch {
            print("gallery: \(error)")
            exit(1)
        }
    }

    static let size = ImageSize(width: cell.width, height: cell.height, mode: .fill)

    static func urls() -> [String] {
        var urls: [String] = []
        while let line = readLine() { urls.append(line) }
        return urls
    }

    init(_ posters: [ImageRequest], of cache: MediaCache) {
        self.posters = posters
        pictures = ImagePipeline(cache: cache, decoder: PosterDecoder())
        sheet = ContactSheet(cells: posters.count, columns: Self.columns, cell: Self.cell)
    }

    /// Down and up again.
    mutating func scroll() async {
        let parts = (posters.count + Self.window - 1) / Self.window
        for number in 0..<parts { await show(part(number), ahead: part(number + 1)) }
        let down = tell("down", since: ImageStatistics())
        for number in (0..<parts).reversed() { await show(part(number), ahead: part(number - 1)) }
        let up = tell("up", since: down)
        print("\(up.bodiesFromOrigin) bodies from the origin, \(up.bodiesFromCache) from the cache")
        if missing > 0 { print("\(missing) cannot be shown") }
    }

    func part(_ number: Int) -> Range<Int> {
        (number * Self.window..<(number + 1) * Self.window).clamped(to: 0..<posters.count)
    }

    /// Shows a part of the list: what is in memory at once, the rest as it comes.
    mutating func show(_ range: Range<Int>, ahead: Range<Int>) async {
        // What is shown stays in the list, or what was begun for it before would be abandoned.
        pictures.prefetch(Array(posters[range]) + posters[ahead])
        await withTaskGroup(of: (Int, Poster?).self) { group in
            for index in range {
                if let poster = pictures.cachedPicture(for: posters[index]) {
                    sheet.draw(poster, at: index)
                    continue
                }
                let (request, pictures) = (posters[index], pictures)
                group.addTask {
                    do {
                        return (index, try await pictures.picture(for: request))
                    } catch {
                        return (index, nil)  // Its cell stays empty.
                    }
                }
            }
            for await (index, poster) in group { draw(poster, at: index) }
        }
        await look()
    }

    /// As long as a person looks at a screen at least.
    func look() async {
        do {
            try await Task.sleep(for: .milliseconds(50))
        } catch {
            // Nobody looks any more.
        }
    }

    mutating func draw(_ poster: Poster?, at index: Int) {
        guard let poster else {
            missing += 1
            return
        }
        if isFirst { print("the first picture after \(ContinuousClock.now - begin)") }
        isFirst = false
        sheet.draw(poster, at: index)
    }

    func tell(_ words: String, since before: ImageStatistics) -> ImageStatistics {
        let now = pictures.statistics
        let hits = now.memoryHits - before.memoryHits
        let all = hits + now.memoryMisses - before.memoryMisses
        let decoded = now.decoded - before.decoded
        print("\(words): \(hits * 100 / max(1, all)) % were in memory, \(decoded) decoded")
        return now
    }
}
