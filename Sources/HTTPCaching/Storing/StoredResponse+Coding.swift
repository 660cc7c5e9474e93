import HTTPTypes

/// The binary form of a stored response; integers are little-endian.
///
/// | field | bytes |
/// | --- | --- |
/// | version, 2 | 1 |
/// | status | 2 |
/// | request time, response time: nanoseconds since 1970 | 8 + 8 |
/// | flags | 4 |
/// | method, URL | text each |
/// | final URL, key name | optional text each |
/// | number of selecting fields | 2 |
/// | for each: name, digest of the value | text, optional text |
/// | number of fields | 2 |
/// | for each: name, value | text, text |
///
/// A text is its length in 4 bytes and then its bytes; an optional text is preceded by one byte, 0
/// for none and 1 for one. No further bytes may follow.
///
/// Version 1 has the plain values of selecting fields, and no flag for a cookie in the request. It
/// is read as if there had been a cookie, and without `Set-Cookie`, which is meant for one client.
extension StoredResponse {
    private static let version: UInt8 = 2

    /// Encodes the value.
    package func encoded() -> [UInt8] {
        var writer = ByteWriter()
        writer.write(Self.version)
        writer.write(UInt16(clamping: status))
        writer.write(requestTime.nanoseconds)
        writer.write(responseTime.nanoseconds)
        writer.write(flags.rawValue)
        writer.write(text: origin.method)
        writer.write(text: origin.url)
        writer.write(optionalText: origin.finalURL)
        writer.write(optionalText: origin.explicitKey)
        writer.write(UInt16(clamping: selectingFields.count))
        for field in selectingFields.prefix(Int(UInt16.max)) {
            writer.write(text: field.name)
            writer.write(optionalText: field.digest)
        }
        writer.write(UInt16(clamping: fields.count))
        for field in fields {
            writer.write(text: field.name.rawName)
            field.withUnsafeBytesOfValue { writer.write(bytes: $0) }
        }
        return writer.bytes
    }

    /// Decodes the result of ``encoded()``; nil for an unknown version and for damaged bytes.
    package init?(encoded bytes: some Collection<UInt8>) {
        var reader = ByteReader(bytes)
        guard let version = reader.read(UInt8.self), (1...Self.version).contains(version),
            let status = reader.read(UInt16.self),
            let requestTime = reader.read(Int64.self),
            let responseTime = reader.read(Int64.self),
            let flags = reader.read(UInt32.self),
            let origin = Origin(&reader),
            let selectingFields = Self.selectingFields(from: &reader, version: version),
            var fields = Self.fields(&reader), reader.isAtEnd
        else { return nil }
        var read = Flags(rawValue: flags)
        if version == 1 {
            fields[.setCookie] = nil
            read.insert(.personal)
        }
        self.init(
            status: Int(status),
            fields: fields,
            requestTime: WallTime(nanoseconds: requestTime),
            responseTime: WallTime(nanoseconds: responseTime),
            origin: origin,
            selectingFields: selectingFields,
            flags: read
        )
    }

    private static func selectingFields(
        from reader: inout ByteReader,
        version: UInt8
    ) -> [SelectingField]? {
        guard let count = reader.read(UInt16.self) else { return nil }
        var fields: [SelectingField] = []
        for _ in 0..<count {
            guard let name = reader.readText(), let text = reader.readOptionalText() else {
                return nil
            }
            let isOld = version == 1
            fields.append(
                isOld
                    ? SelectingField(name: name, value: text)
                    : SelectingField(name: name, digest: text)
            )
        }
        return fields
    }

    private static func fields(_ reader: inout ByteReader) -> HTTPFields? {
        // `HTTPFields` traps at 65,535 fields.
        guard let count = reader.read(UInt16.self), count < 60_000 else { return nil }
        var fields = HTTPFields()
        for _ in 0..<count {
            guard let text = reader.readText(), let name = HTTPField.Name(text),
                let value = reader.readBytes()
            else { return nil }
            fields.append(HTTPField(name: name, value: value))
        }
        return fields
    }
}

extension StoredResponse.Origin {
    fileprivate init?(_ reader: inout ByteReader) {
        guard let method = reader.readText(), let url = reader.readText(),
            let finalURL = reader.readOptionalText(), let explicitKey = reader.readOptionalText()
        else { return nil }
        self.init(method: method, url: url, finalURL: finalURL, explicitKey: explicitKey)
    }
}
