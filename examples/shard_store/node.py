"""A node of the store: files over HTTP on loopback, until standard input ends. It knows nothing of codes."""

import contextlib
import os
import re
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_NAME = re.compile(r"/([A-Za-z0-9][A-Za-z0-9._-]{0,200})")
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_MOST = 64 << 20


class Handler(BaseHTTPRequestHandler):
    """Serves the files of one directory."""

    protocol_version = "HTTP/1.1"
    directory = "."
    timeout = 10

    def _path(self) -> str | None:
        found = _NAME.fullmatch(self.path)
        if found is None:
            self.send_error(HTTPStatus.BAD_REQUEST, "not a name")
            return None
        return os.path.join(self.directory, found[1])

    def do_PUT(self) -> None:
        """Keep a file: under a temporary name first, so that nobody sees half of it."""
        path = self._path()
        if path is None:
            return
        length = int(self.headers.get("Content-Length", "0"))
        if length > _MOST:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        temporary = f"{path}~{threading.get_ident()}"
        with open(temporary, "wb") as file:
            file.write(self.rfile.read(length))
        os.replace(temporary, path)
        self.send_response(HTTPStatus.NO_CONTENT)
        self.end_headers()

    def do_GET(self) -> None:
        """Return a file, or a part of it."""
        self._send(body=True)

    def do_HEAD(self) -> None:
        """Say whether a file is there."""
        self._send(body=False)

    def _send(self, *, body: bool) -> None:
        path = self._path()
        if path is None:
            return
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                part = _RANGE.fullmatch(self.headers.get("Range", ""))
                first, last = (int(part[1]), min(int(part[2]), size - 1)) if part else (0, size - 1)
                file.seek(first)
                data = file.read(last - first + 1) if body else b""
        except FileNotFoundError:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK)
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class names it so
        """Say nothing."""


def main() -> None:
    """Serve the directory that the command line names."""
    Handler.directory = sys.argv[1]
    os.makedirs(Handler.directory, exist_ok=True)
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.read()  # ends with the process that started this one, however that ends
    server.shutdown()


if __name__ == "__main__":
    main()
