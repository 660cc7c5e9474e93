package import TieredCache

// What downloads require of the machine.
extension DownloadTable {
    /// Whether any that has not stopped requires something.
    package var hasConditions: Bool { live.values.contains { !required(of: $0).isEmpty } }

    /// What a download waits for: what it requires and does not hold.
    ///
    /// What is unknown holds, since it would wait for ever; before anything was learned nothing
    /// does.
    package func awaited(by download: Live) -> [Condition] {
        let required = required(of: download)
        guard let machine else { return required }
        return required.filter { machine.holds($0) == false }
    }

    /// Of what a download requires, what nothing says; none before anything was learned.
    package func unknown(to download: Live) -> [Condition] {
        guard let machine else { return [] }
        return required(of: download).filter { machine.holds($0) == nil }
    }

    private func required(of download: Live) -> [Condition] {
        let text = download.record.options["require"] ?? options["require"] ?? ""
        return text.isEmpty ? [] : Condition.list(text) ?? []
    }

    /// Takes what is known of the machine; nil where nothing was asked, or answered yet.
    package mutating func didLearn(_ state: MachineState?, now: MonotonicTime) -> [Action] {
        machine = state
        return heedConditions(now: now)
    }

    /// Changes what one requires that has not stopped.
    ///
    /// - Throws: ``RPCError`` for one that has stopped.
    mutating func require(
        _ gid: GID,
        _ conditions: [Condition],
        now: MonotonicTime
    ) throws(RPCError) -> [Action] {
        guard var download = live[gid] else {
            throw RPCError("Cannot change option for GID#\(gid)")
        }
        download.record.options.set("require", to: Condition.text(conditions))
        live[gid] = download
        return [.save(download.record)] + heedConditions(now: now)
    }

    /// Lets those wait that run and must not, once the machine is known, and starts those that may.
    private mutating func heedConditions(now: MonotonicTime) -> [Action] {
        var actions: [Action] = []
        let running = machine == nil ? [] : activeOnes
        for var download in running where !awaited(by: download).isEmpty {
            guard let run = download.run else { continue }
            end(&download)
            live[download.record.gid] = download
            actions.append(.stop(download.record.gid, run: run))
        }
        return actions + fillSlots(now: now)
    }

    /// Whether one is to run as soon as there is a place.
    func isReady(_ download: Live, now: MonotonicTime) -> Bool {
        download.run == nil && download.record.state == .waiting
            && download.notBefore.map { $0 <= now } ?? true && awaited(by: download).isEmpty
    }
}
