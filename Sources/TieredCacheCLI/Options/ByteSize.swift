import ArgumentParser
import TieredCache

/// A SIZE argument: `500000`, `64MiB`, `2GiB`.
struct ByteSize: ExpressibleByArgument, Hashable {
    let bytes: Int64

    init(_ bytes: Int64) {
        self.bytes = bytes
    }

    init?(argument: String) {
        // The parser's own message names the option and the value.
        guard let bytes = try? ByteCountFormat.parse(argument) else { return nil }
        self.bytes = bytes
    }
}
