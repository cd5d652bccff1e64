"""Peers that are programs: klauspost/reedsolomon in Go, Hadoop's raw coders in Java."""

import atexit
import glob
import hashlib
import importlib.util
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from functools import cache, partial

import numpy as np

from tests.peers.base import Bytes, PeerError, PeerMissingError, complete, debian_version, program_cache

__all__ = ["Served", "hadoop", "klauspost", "split_file"]

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
KLAUSPOST = "src/github.com/klauspost/reedsolomon"
#: Where Debian's golang-*-dev packages put sources.
GOPATH = "/usr/share/gocode"


class Server:
    """A running peer program; one request at a time."""

    def __init__(self, command: Sequence[str], library: str, version: str, call: str) -> None:
        self.provenance = {"library": library, "version": version, "call": call}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lock = threading.Lock()
        atexit.register(self.close)

    def ask(self, request: str, blocks: Sequence[Bytes]) -> bytes:
        """Send a request and its bytes; return the answer's bytes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with self.lock:
            self.process.stdin.write(request.encode() + b"\n" + b"".join(block.tobytes() for block in blocks))
            self.process.stdin.flush()
            verdict, _, rest = self.process.stdout.readline().decode().partition(" ")
            if verdict == "ok":
                return self.process.stdout.read(int(rest))
        raise PeerError(rest.strip() or "the peer program has ended")

    def close(self) -> None:
        """End the program."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process.wait(timeout=10)


class Served:
    """One variant of a peer program."""

    def __init__(self, server: Server, variant: str) -> None:
        self.server = server
        self.variant = variant

    @property
    def provenance(self) -> dict[str, str]:
        """Library, version and call."""
        return {**self.server.provenance, "variant": self.variant}

    def encode(self, data: Bytes, m: int) -> Bytes:
        """Parity by the program."""
        k, length = data.shape
        answer = self.server.ask(f"encode {self.variant} {k} {m} {length}", list(data))
        return np.frombuffer(answer, np.uint8).reshape(m, length)

    def rebuild(self, k: int, m: int, shards: Mapping[int, Bytes], lost: Sequence[int]) -> dict[int, Bytes]:
        """Return the lost shards, by the program."""
        blocks = complete(k, m, shards, lost)
        length = len(blocks[0])
        names = ",".join(map(str, lost))
        answer = self.server.ask(f"rebuild {self.variant} {k} {m} {length} {names}", blocks)
        return dict(zip(lost, np.frombuffer(answer, np.uint8).reshape(len(lost), length), strict=True))


def split_file(peer: Served, content: bytes, k: int, m: int) -> list[bytes]:
    """Return all shards of a file as the program cuts and encodes it."""
    block = np.frombuffer(content, np.uint8)
    answer = peer.server.ask(f"split {peer.variant} {k} {m} {len(block)}", [block])
    length = len(answer) // (k + m)
    return [answer[i * length : (i + 1) * length] for i in range(k + m)]


def go_version(go: str) -> str:
    """Return what `go version` says."""
    return subprocess.run([go, "version"], capture_output=True, check=True, text=True).stdout.strip()


def klauspost_version(gopath: str) -> str:
    """Version of the sources: Debian's, or what the environment says of sources elsewhere."""
    if gopath == GOPATH:
        package = "golang-github-klauspost-reedsolomon-dev"
        return f"Debian {package} {debian_version(package)}"
    return os.environ.get("GFCODE_TESTS_GOPATH_VERSION", "unknown")


def has_jerasure_matrix(sources: str) -> bool:
    """Whether this release of klauspost/reedsolomon has WithJerasureMatrix."""
    with open(os.path.join(sources, "options.go"), encoding="utf-8") as file:
        return "func WithJerasureMatrix" in file.read()


@cache
def klauspost_server() -> Server:
    """Build the Go program against the installed sources, without a network, and start it."""
    go = shutil.which("go")
    gopath = os.environ.get("GFCODE_TESTS_GOPATH", GOPATH)
    sources = os.path.join(gopath, KLAUSPOST)
    if go is None or not os.path.isdir(sources):
        raise PeerMissingError(
            "klauspost/reedsolomon is not installed: apt-get install golang-go golang-github-klauspost-reedsolomon-dev"
        )
    files = [os.path.join(PROGRAMS, "klauspost.go")]
    if has_jerasure_matrix(sources):
        files.append(os.path.join(PROGRAMS, "jerasure.go"))
    digest = hashlib.sha256()
    for name in [*files, *sorted(glob.glob(os.path.join(sources, "*.go")))]:
        with open(name, "rb") as file:
            digest.update(file.read())
    digest.update(go_version(go).encode())
    program = os.path.join(program_cache(), f"klauspost-{digest.hexdigest()[:16]}")
    if not os.path.exists(program):
        environment = {**os.environ, "GO111MODULE": "off", "GOPATH": gopath, "GOFLAGS": "", "CGO_ENABLED": "0"}
        partial_name = f"{program}.{os.getpid()}"
        built = subprocess.run(
            [go, "build", "-o", partial_name, *files], env=environment, capture_output=True, text=True, check=False
        )
        if built.returncode:
            raise PeerMissingError(f"go build fails: {built.stderr.strip().splitlines()[-1]}")
        os.replace(partial_name, program)
    version = f"{klauspost_version(gopath)}, {go_version(go)}"
    return Server([program], "klauspost/reedsolomon", version, "New(k, m, option).Encode (tests/peers/programs)")


def klauspost(variant: str) -> "partial[Served]":
    """Make a loader of klauspost/reedsolomon with one kind of matrix: default, cauchy, par1, jerasure."""
    return partial(_klauspost, variant)


def _klauspost(variant: str) -> Served:
    peer = Served(klauspost_server(), variant)
    if variant == "jerasure":
        try:
            peer.encode(np.zeros((2, 8), np.uint8), 1)
        except PeerError as error:
            raise PeerMissingError(
                f"the installed klauspost/reedsolomon has no WithJerasureMatrix ({error})"
            ) from error
    return peer


@cache
def hadoop_server() -> Server:
    """Compile and start the Java program against a Hadoop client jar: GFCODE_TESTS_HADOOP, else pyspark's."""
    java, javac = shutil.which("java"), shutil.which("javac")
    folder = os.environ.get("GFCODE_TESTS_HADOOP")
    if folder is None:
        found = importlib.util.find_spec("pyspark")
        if found is not None and found.origin is not None:
            folder = os.path.join(os.path.dirname(found.origin), "jars")
    if java is None or javac is None or folder is None:
        raise PeerMissingError("Hadoop is not installed: a JDK and pip install pyspark, whose jars hold it")
    jars = [
        name
        for pattern in ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "slf4j-api-*.jar", "*logging*.jar")
        for name in glob.glob(os.path.join(folder, pattern))
    ]
    classpath = ":".join(jars)
    classes = os.path.join(program_cache(), "hadoop-classes")
    built = subprocess.run(
        [javac, "-cp", classpath, "-d", classes, os.path.join(PROGRAMS, "Hadoop.java")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if built.returncode:
        raise PeerMissingError(f"the Hadoop jars in {folder} do not fit: {built.stderr.strip().splitlines()[0]}")
    version = ", ".join(sorted(os.path.basename(jar) for jar in jars if "client-api" in jar))
    command = [java, "-ea", "-cp", f"{classes}:{classpath}", "Hadoop"]
    return Server(command, "Apache Hadoop", version, "rawcoder encoders (tests/peers/programs)")


def hadoop(variant: str) -> "partial[Served]":
    """Make a loader of one of Hadoop's raw coders: rs, rs-legacy, xor."""
    return partial(_hadoop, variant)


def _hadoop(variant: str) -> Served:
    return Served(hadoop_server(), variant)
