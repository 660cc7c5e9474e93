import Subprocess
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Runs programs as on a disk that does not end writes behind the first 64 KiB of a file: a filter
/// of system calls hands `pwritev(2)` at such an offset to a listener that never answers.
///
/// Needs no rights, but Linux 5.5 and Perl, on x86-64 or arm64.
enum HangingDisk {
    static let program = FilePath("/usr/bin/perl")

    /// What `/proc/PID/task/TID/wchan` contains of a thread whose write hangs.
    static let place = "seccomp_do_user_notification"

    /// The arguments that make ``program`` run another one; it exits with 99 where it cannot.
    static func arguments(_ arguments: [String]) -> [String] { ["-e", script] + arguments }

    static func isPermitted() async throws -> Bool {
        guard access(program.string, X_OK) == 0 else { return false }
        let result = try await Subprocess.run(
            .path(program),
            arguments: Arguments(arguments(["/bin/true"])),
            input: .none,
            output: .discarded,
            error: .discarded
        )
        return result.terminationStatus.isSuccess
    }

    // The numbers: of the architecture (AUDIT_ARCH_*), pwritev, prctl, seccomp, fcntl. The filter is
    // classic BPF over `struct seccomp_data`; 40 is where the offset of pwritev begins. The program
    // itself has the listener, open and unread.
    private static let script = """
        use POSIX ();
        my %numbers = (
            x86_64 => [0xC000003E, 296, 157, 317, 72],
            aarch64 => [0xC00000B7, 70, 167, 277, 25],
        );
        my ($machine, $pwritev, $prctl, $seccomp, $fcntl) =
            @{$numbers{(POSIX::uname())[4]} || exit 99};
        my @steps = map { pack 'SCCL', @$_ }
            [0x20, 0, 0, 4], [0x15, 0, 5, $machine],  # load the architecture: another one is let by
            [0x20, 0, 0, 0], [0x15, 0, 3, $pwritev],  # load the call
            [0x20, 0, 0, 40], [0x35, 0, 1, 65536],    # load the offset: a smaller one is let by
            [0x06, 0, 0, 0x7FC00000],                 # SECCOMP_RET_USER_NOTIF
            [0x06, 0, 0, 0x7FFF0000];                 # SECCOMP_RET_ALLOW
        my $steps = join '', @steps;
        my $filter = pack 'S x![P] P', scalar @steps, $steps;
        syscall($prctl, 38, 1, 0, 0, 0) == 0 or exit 99;       # PR_SET_NO_NEW_PRIVS
        my $listener = syscall($seccomp, 1, 8, $filter);       # SECCOMP_FILTER_FLAG_NEW_LISTENER
        $listener >= 0 or exit 99;
        # Another number, which exec does not close, and which is none that a program inherits.
        syscall($fcntl, $listener, 0, 100) >= 0 or exit 99;
        exec @ARGV or exit 99;
        """
}
