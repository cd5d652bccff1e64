"""The exit codes of the command line: one table for `--help`, README and the code."""

from enum import IntEnum

__all__ = ["EXIT_CODES", "Exit"]


class Exit(IntEnum):
    """What the exit code of a command says."""

    FINE = 0
    FAILED = 1
    USAGE = 2
    REPAIRABLE = 3
    BEYOND_REPAIR = 4
    INTERRUPTED = 130
    READER_GONE = 141
    TERMINATED = 143


#: Every exit code with its meaning.
EXIT_CODES: dict[Exit, str] = {
    Exit.FINE: "fine: done, or nothing is damaged",
    Exit.FAILED: "failed: an error, named on stderr",
    Exit.USAGE: "wrong usage: an option, number or size that cannot be",
    Exit.REPAIRABLE: "damaged, and `gfcode repair` can repair it (verify)",
    Exit.BEYOND_REPAIR: "beyond repair: some stripes have fewer than k good frames",
    Exit.INTERRUPTED: "interrupted (SIGINT)",
    Exit.READER_GONE: "whoever read the output closed it (SIGPIPE)",
    Exit.TERMINATED: "terminated (SIGTERM)",
}
