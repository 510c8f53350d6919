"""A service in front of a language model that is paid by the token: it passes on OpenAI's chat completions and Anthropic's messages.
Python 3.8 or newer, nothing to install.

    MODEL_URL=http://127.0.0.1:9000 PORT=8000 python3 tokens.py
"""

import json
import os
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.request import Request, urlopen

USD_PER_TOKEN = 0.00002


def cost_of(answer):
    """What an answer costs: the model writes the number of tokens into it, and at the end of a stream."""
    found = re.findall(rb'"(?:completion|output)_tokens":\s*(\d+)', answer)
    return f"{int(found[-1]) * USD_PER_TOKEN if found else 0:.6f}"


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = self.read_body()
        # What is authorized pays for so many tokens. The model stops there.
        most = int(float(self.headers.get("X-ACF-Authorized", 0)) / USD_PER_TOKEN + 1e-6)
        sent = {**asked, "max_tokens": min(asked.get("max_tokens", most), most)}
        # Without this option, OpenAI's streams do not say how many tokens there were.
        if asked.get("stream") and self.path.endswith("/chat/completions"):
            sent["stream_options"] = {"include_usage": True}
        request = Request(MODEL_URL + self.path, json.dumps(sent).encode(), {"Content-Type": "application/json"})
        try:
            model = urlopen(request)
        except HTTPError as refused:
            model = refused
        self.send_response(model.status)
        self.send_header("Content-Type", model.headers["Content-Type"])
        if not asked.get("stream") or model.status != 200:
            answer = model.read()
            self.send_header("Content-Length", str(len(answer)))
            self.send_header("X-ACF-Charge", cost_of(answer))
            self.end_headers()
            return self.wfile.write(answer)
        # The cost of a stream is known at its end, so a trailer reports it. If the caller leaves before, the gateway reads on.
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Trailer", "X-ACF-Charge")
        self.end_headers()
        answer = b""
        while piece := model.read1(65536):
            answer += piece
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\nX-ACF-Charge: %s\r\n\r\n" % cost_of(answer).encode())

    def read_body(self):
        # The gateway passes a body without a length on in chunks.
        if self.headers.get("Transfer-Encoding") is None:
            return json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = b""
        while (size := int(self.rfile.readline(), 16)) > 0:
            body += self.rfile.read(size + 2)[:-2]
        self.rfile.readline()
        return json.loads(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    MODEL_URL = os.environ["MODEL_URL"]
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 8000))), Service)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()
