import Testing

/// A film whose streams lie one behind the other instead of side by side, so that a player of it
/// jumps to and fro all the time.
struct ScatteredFilm {
    let bytes: [UInt8]

    /// Moves the chunks of a film that ffmpeg has written: `ftyp`, `free`, `mdat`, `moov`, or
    /// `moov` in front.
    ///
    /// - Parameters:
    ///   - film: the film.
    ///   - pieces: into how many pieces, equally long, it falls; in each a stream lies behind the
    ///     other.
    init(_ film: [UInt8], pieces: Int = 1) throws {
        let top = Self.boxes(in: 0..<film.count, of: film)
        let media = try #require(top.first { $0.type == "mdat" })
        let movie = try #require(top.first { $0.type == "moov" })
        let tracks = try Self.boxes(in: movie.body, of: film).filter { $0.type == "trak" }.map {
            try Self.chunks(of: $0.body, in: film)
        }
        var result = film
        var position = media.body.lowerBound
        for piece in 0..<pieces {
            for chunks in tracks {
                let bounds = [piece, piece + 1].map { chunks.count * $0 / pieces }
                for chunk in chunks[bounds[0]..<bounds[1]] {
                    let place = Self.number(film, chunk.entry)
                    result.replaceSubrange(
                        position..<position + chunk.size,
                        with: film[place..<place + chunk.size]
                    )
                    Self.put(position, at: chunk.entry, in: &result)
                    position += chunk.size
                }
            }
        }
        try #require(position <= media.body.upperBound)
        bytes = result
    }

    /// The chunks of a track: where its offset is written, and its size.
    private static func chunks(
        of track: Range<Int>,
        in film: [UInt8]
    ) throws -> [(entry: Int, size: Int)] {
        let tables = boxes(in: try body(["mdia", "minf", "stbl"], in: track, of: film), of: film)
        func table(_ type: String) throws -> Range<Int> {
            try #require(tables.first { $0.type == type }, "no \(type)").body
        }
        let offsets = try table("stco")
        let sizes = chunkSizes(try table("stsc"), try table("stsz"), film)
        try #require(number(film, offsets.lowerBound + 4) == sizes.count)
        return sizes.enumerated().map { (offsets.lowerBound + 8 + 4 * $0.offset, $0.element) }
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
