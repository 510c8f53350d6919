"""A service that is paid by the second of work: it searches for the largest prime number, for `?seconds=` or as long as is paid for.
Python 3.8 or newer, nothing to install.

    PORT=8000 python3 seconds.py
"""

import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

USD_PER_SECOND = 0.01


def is_prime(n):
    return all(n % divisor for divisor in range(2, int(n**0.5) + 1))


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        asked = float(parse_qs(urlsplit(self.path).query).get("seconds", ["1"])[0])
        paid_for = float(self.headers.get("X-ACF-Authorized", 0)) / USD_PER_SECOND
        begun = time.monotonic()
        prime = n = 2
        while time.monotonic() - begun < min(asked, paid_for):
            n += 1
            prime = n if is_prime(n) else prime
        seconds = time.monotonic() - begun
        answer = json.dumps({"prime": prime, "seconds": round(seconds, 3)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.send_header("X-ACF-Charge", f"{seconds * USD_PER_SECOND:.6f}")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 8000))), Service)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()
