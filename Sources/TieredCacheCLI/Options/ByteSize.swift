import ArgumentParser
import TieredCache

/// A SIZE argument: `500000`, `64MiB`, `2GiB`.
struct ByteSize: ExpressibleByArgument, Hashable {
    let bytes: Int64

    init(_ bytes: Int64) {
        self.bytes = bytes
    }

    init?(argument: String) {
        do throws(CacheError) {
            bytes = try ByteCountFormat.parse(argument)
        } catch {
            // The message of the parser names the option and the value.
            return nil
        }
    }
}
