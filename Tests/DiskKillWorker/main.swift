// Kills a process that works on a cache directory, again and again, and looks at what it left.
//
// usage: DiskKillWorker DIRECTORY KILLS SEED
//
// This process has one thread, so that a fork of it is a whole process: the child opens the
// directory and works until it is killed; then the parent opens it and compares every byte. Ends
// with a line that says how often, or with exit code 1 and what was wrong.

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

guard CommandLine.arguments.count == 4, let kills = Int(CommandLine.arguments[2]),
    let seed = UInt64(CommandLine.arguments[3])
else {
    print("usage: DiskKillWorker DIRECTORY KILLS SEED")
    exit(64)
}

let directory = CommandLine.arguments[1]
var random = SeededGenerator(state: seed)
var findings = Findings()
for number in 0..<kills {
    let childSeed = random.next()
    let child = fork()
    guard child >= 0 else {
        print("no process could be made: \(errno)")
        exit(71)
    }
    if child == 0 {
        work(directory, seed: childSeed)
        _exit(3)
    }
    usleep(UInt32(random.next() % 25_000))
    kill(child, SIGKILL)
    var status: Int32 = 0
    waitpid(child, &status, 0)
    // The low seven bits are the signal; a child that ended otherwise had met an error.
    let isKilled = status & 0x7F == SIGKILL
    let problem = isKilled ? inspect(directory, &findings) : "the child ended with \(status)"
    if let problem {
        print("seed \(seed), kill \(number): \(problem)")
        exit(1)
    }
}
print(
    "kills \(kills) entries \(findings.entries) partial \(findings.partial)"
        + " bytes \(findings.bytes) damaged \(findings.damaged)"
)
