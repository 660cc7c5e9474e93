// Where an entry's parts lie, and how it keeps its key.
//
//     0   ledger
//     32  value
//     40  text: length and qualifier of a key that is text     (if the value is an object)
//     48  text: the bytes; or, of more than ``inlineCapacity``, where they are and the key itself
//
// A key that is no text lies where the length would.
extension MemoryEntries {
    /// The most bytes of a text that are kept in the entry.
    @inlinable static var inlineCapacity: Int { stride &- bytesOffset }

    @inlinable static var valueOffset: Int {
        aligned(MemoryLayout<MemoryLedger>.size, to: MemoryLayout<Value>.alignment)
    }

    @inlinable static var keyOffset: Int {
        let alignment = KeyKind.isText ? 8 : MemoryLayout<Key>.alignment
        return aligned(valueOffset &+ MemoryLayout<Value>.size, to: alignment)
    }

    @inlinable static var bytesOffset: Int { keyOffset &+ 8 }

    @inlinable static var stride: Int {
        guard KeyKind.isText else {
            let size = keyOffset &+ MemoryLayout<Key>.size
            return aligned(
                size,
                to: size <= 64
                    ? 64 : max(8, MemoryLayout<Value>.alignment, MemoryLayout<Key>.alignment)
            )
        }
        // 80 bytes hold most URLs, and fill up two cache lines.
        return aligned(bytesOffset &+ 80, to: alignment)
    }

    @inlinable static var alignment: Int {
        max(128, MemoryLayout<Value>.alignment, MemoryLayout<Key>.alignment)
    }

    @inlinable
    static func aligned(_ offset: Int, to alignment: Int) -> Int {
        (offset &+ alignment &- 1) / alignment &* alignment
    }

    // MARK: Keys

    /// Length and qualifier of a text, in one word: they are compared together.
    @inlinable
    @inline(__always)
    func textHeader(_ number: Int) -> UnsafeMutablePointer<UInt64> {
        (base + (number &* Self.stride &+ Self.keyOffset)).assumingMemoryBound(to: UInt64.self)
    }

    @inlinable
    @inline(__always)
    func textBytes(_ number: Int) -> UnsafeMutablePointer<UInt8> {
        (base + (number &* Self.stride &+ Self.bytesOffset)).assumingMemoryBound(to: UInt8.self)
    }

    /// The address of the bytes of a text that is too long for the entry; 0 if it is not known.
    @inlinable
    @inline(__always)
    func address(_ number: Int) -> UnsafeMutablePointer<UInt> {
        (base + (number &* Self.stride &+ Self.bytesOffset)).assumingMemoryBound(to: UInt.self)
    }

    /// The key as a value: one that is no text, or whose text is too long.
    @inlinable
    @inline(__always)
    func wholeKey(_ number: Int) -> UnsafeMutablePointer<Key> {
        let offset = KeyKind.isText ? Self.bytesOffset &+ 8 : Self.keyOffset
        return (base + (number &* Self.stride &+ offset)).assumingMemoryBound(to: Key.self)
    }

    @inlinable
    @inline(__always)
    static func header(of key: Key, count: Int) -> UInt64 {
        UInt64(truncatingIfNeeded: count) << 32 | UInt64(KeyKind.qualifier(of: key))
    }

    /// Whether an entry has this key, whose text has these bytes.
    @inlinable
    @inline(__always)
    func has(_ number: Int, key: Key, bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard KeyKind.isText else { return wholeKey(number).pointee == key }
        guard textHeader(number).pointee == Self.header(of: key, count: bytes.count) else {
            return false
        }
        guard let other = bytes.baseAddress else { return true }
        guard bytes.count > Self.inlineCapacity else {
            return UTF8Bytes.areEqual(textBytes(number), other, count: bytes.count)
        }
        guard let start = UnsafePointer<UInt8>(bitPattern: address(number).pointee) else {
            return KeyKind.areEqual(wholeKey(number).pointee, key)
        }
        return UTF8Bytes.areEqual(start, other, count: bytes.count)
    }

    @inlinable
    @inline(__always)
    func setKey(of number: Int, to key: Key, bytes: UnsafeBufferPointer<UInt8>) {
        guard KeyKind.isText else { return wholeKey(number).initialize(to: key) }
        textHeader(number).pointee = Self.header(of: key, count: bytes.count)
        guard bytes.count <= Self.inlineCapacity else {
            address(number).pointee = KeyKind.address(of: key)
            return wholeKey(number).initialize(to: key)
        }
        guard let start = bytes.baseAddress else { return }
        UTF8Bytes.copy(start, to: textBytes(number), count: bytes.count)
    }

    /// Whether the key is kept as a value, with references to count.
    @inlinable
    @inline(__always)
    func hasWholeKey(_ number: Int) -> Bool {
        !KeyKind.isText || textHeader(number).pointee >> 32 > UInt64(Self.inlineCapacity)
    }

    /// Ends an entry's key.
    ///
    /// - Returns: the key if `isWanted`, or if it has to be released, which is best done outside
    ///   the lock.
    @inlinable
    @inline(__always)
    func takeKey(_ number: Int, isWanted: Bool) -> Key? {
        if hasWholeKey(number) { return wholeKey(number).move() }
        return isWanted ? key(number) : nil
    }

    /// The key of a live entry; made anew if only its bytes are kept.
    @usableFromInline
    @inline(never)
    func key(_ number: Int) -> Key {
        if hasWholeKey(number) { return wholeKey(number).pointee }
        let header = textHeader(number).pointee
        return KeyKind.make(
            UnsafeBufferPointer(start: textBytes(number), count: Int(header >> 32)),
            qualifier: UInt32(truncatingIfNeeded: header)
        )
    }

    func moveKey(_ number: Int, from old: MemoryEntries) {
        guard KeyKind.isText else {
            return wholeKey(number).moveInitialize(from: old.wholeKey(number), count: 1)
        }
        textHeader(number).pointee = old.textHeader(number).pointee
        if hasWholeKey(number) {
            address(number).pointee = old.address(number).pointee
            wholeKey(number).moveInitialize(from: old.wholeKey(number), count: 1)
        } else {
            textBytes(number).update(from: old.textBytes(number), count: Self.inlineCapacity)
        }
    }
}
