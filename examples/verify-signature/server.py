"""A service that answers only to calls which its gateway has signed. Python 3.8 or newer, nothing to install.

    SIGNING_SECRET=sgs_... PORT=8000 python3 server.py
"""

import base64
import hmac
import json
import os
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Exactly these components must be signed, or an attacker could leave some out.
SIGNED = r'(sig\d+)=(\("@method" "@authority" "@path" "@query" "x-acf-usage-id" "x-acf-buyer"\);created=(\d{1,12});[^,]*)'


def is_from_gateway(method, target, headers, secret, authority=None):
    """Whether a request comes from the gateway, is meant for this server, and is less than five minutes old.

    The body is not signed. `target` is path and query, byte for byte as they arrive. `authority` is host and port of the listing's
    endpoint, if a proxy in front changes the Host header.
    """
    path, mark, query = target.partition("?")
    base = f'"@method": {method}\n"@authority": {authority or headers.get("Host")}\n"@path": {path}\n"@query": ?{query}\n'
    base += f'"x-acf-usage-id": {headers.get("X-ACF-Usage-Id")}\n"x-acf-buyer": {headers.get("X-ACF-Buyer")}\n"@signature-params": '
    for label, params, created in re.findall(SIGNED, headers.get("Signature-Input", "")):
        given = re.search(label + "=:([0-9A-Za-z+/=]*):", headers.get("Signature", ""))
        right = base64.b64encode(hmac.digest(secret.encode(), (base + params).encode(), "sha256")).decode()
        if given and hmac.compare_digest(given[1], right) and abs(time.time() - int(created)) < 300:
            return True
    return False


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def read_body(self):
        # The gateway passes a body without a length on in chunks. What is left unread would be taken for the next request.
        if self.headers.get("Transfer-Encoding") is None:
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while (size := int(self.rfile.readline(), 16)) > 0:
            body += self.rfile.read(size + 2)[:-2]
        self.rfile.readline()
        return body

    def answer(self):
        self.read_body()
        # Not self.path, in which `//a` has become `/a`.
        target = self.requestline.split()[1]
        is_signed = is_from_gateway(self.command, target, self.headers, SECRET)
        body = json.dumps({"signed": is_signed}).encode()
        self.send_response(200 if is_signed else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    SECRET = os.environ["SIGNING_SECRET"]
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 8000))), Service)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()
