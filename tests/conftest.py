"""What every test starts from."""

import signal

# A shell that starts a command in the background has it ignore SIGINT, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
