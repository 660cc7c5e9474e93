import Testing

/// A film whose streams lie one behind the other instead of side by side, so that a player of it
/// jumps to and fro all the time.
struct ScatteredFilm {
    let bytes: [UInt8]

    /// Moves the chunks of a film that ffmpeg has written: `ftyp`, `free`, `mdat`, `moov`.
    init(_ film: [UInt8]) throws {
        let top = Self.boxes(in: 0..<film.count, of: film)
        let media = try #require(top.first { $0.type == "mdat" })
        let movie = try #require(top.first { $0.type == "moov" })
        var result = film
        var position = media.body.lowerBound
        for track in Self.boxes(in: movie.body, of: film) where track.type == "trak" {
            let tables = Self.boxes(
                in: try Self.body(["mdia", "minf", "stbl"], in: track.body, of: film),
                of: film
            )
            func table(_ type: String) throws -> Range<Int> {
                try #require(tables.first { $0.type == type }, "no \(type)").body
            }
            let offsets = try table("stco")
            let sizes = Self.chunkSizes(try table("stsc"), try table("stsz"), film)
            try #require(Self.number(film, offsets.lowerBound + 4) == sizes.count)
            for (index, size) in sizes.enumerated() {
                let entry = offsets.lowerBound + 8 + 4 * index
                let place = Self.number(film, entry)
                result.replaceSubrange(position..<position + size, with: film[place..<place + size])
                Self.put(position, at: entry, in: &result)
                position += size
            }
        }
        try #require(position <= media.body.upperBound)
        bytes = result
    }

    /// The bytes of each chunk, by how many samples it has and how large they are.
    private static func chunkSizes(
        _ chunks: Range<Int>,
        _ samples: Range<Int>,
        _ film: [UInt8]
    ) -> [Int] {
        let fixed = number(film, samples.lowerBound + 4)
        let count = number(film, samples.lowerBound + 8)
        let runs = (0..<number(film, chunks.lowerBound + 4)).map { run in
            let entry = chunks.lowerBound + 8 + 12 * run
            return (first: number(film, entry), samples: number(film, entry + 4))
        }
        var result: [Int] = []
        var sample = 0
        while sample < count {
            let chunk = result.count + 1
            let length = runs.last { $0.first <= chunk }?.samples ?? 1
            let last = min(count, sample + max(1, length))
            result.append(
                (sample..<last).reduce(0) { sum, index in
                    sum + (fixed > 0 ? fixed : number(film, samples.lowerBound + 12 + 4 * index))
                }
            )
            sample = last
        }
        return result
    }

    private static func body(
        _ path: [String],
        in range: Range<Int>,
        of film: [UInt8]
    ) throws -> Range<Int> {
        try path.reduce(range) { range, type in
            try #require(boxes(in: range, of: film).first { $0.type == type }, "no \(type)").body
        }
    }

    private static func boxes(
        in range: Range<Int>,
        of film: [UInt8]
    ) -> [(type: String, body: Range<Int>)] {
        var result: [(type: String, body: Range<Int>)] = []
        var position = range.lowerBound
        while position + 8 <= range.upperBound {
            let size = number(film, position)
            guard size >= 8, position + size <= range.upperBound else { break }
            let type = String(decoding: film[position + 4..<position + 8], as: UTF8.self)
            result.append((type, position + 8..<position + size))
            position += size
        }
        return result
    }

    private static func number(_ film: [UInt8], _ offset: Int) -> Int {
        film[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
    }

    private static func put(_ number: Int, at offset: Int, in film: inout [UInt8]) {
        for index in 0..<4 {
            film[offset + index] = UInt8(truncatingIfNeeded: number >> (8 * (3 - index)))
        }
    }
}
