/// The disk tier's rows: hits and stores beside plain files.
enum DiskRows {
    static func make() throws -> [Row] {
        []
    }
}
