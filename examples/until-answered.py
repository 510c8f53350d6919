"""A call that is repeated until its answer is there, and paid once, with Python's standard library only.

Each attempt has the same Idempotency-Key. Whatever breaks on the way, the gateway gives the first answer again, or makes the call if it
was not paid.

    TOLLGATE_URL=http://127.0.0.1:8080 TOLLGATE_KEY=acf_…:sk_… python3 examples/until-answered.py
"""

import json
import os
import sys
import time
import uuid
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen

if not os.environ.get("TOLLGATE_URL") or not os.environ.get("TOLLGATE_KEY"):
    sys.exit("Set TOLLGATE_URL and TOLLGATE_KEY. examples/README.md says how.")
URL = os.environ["TOLLGATE_URL"].rstrip("/")
KEY = os.environ["TOLLGATE_KEY"]
ATTEMPTS = 10


def call_until_answered(path, body, idempotency_key):
    """Returns status, headers and body. Keep the key with what the call is for: a program that starts again goes on with it."""
    headers = {
        "Authorization": f"Bearer {KEY}",
        "Content-Type": "text/plain; charset=utf-8",
        "X-ACF-Max-Amount": "0.01",
        "Idempotency-Key": idempotency_key,
    }
    for attempt in range(1, ATTEMPTS + 1):
        wait_seconds = 1
        try:
            with urlopen(Request(URL + path, data=body, headers=headers), timeout=60) as response:
                return response.status, response.headers, response.read()
        except HTTPError as error:
            # 409: the first attempt is under way. 429, 5xx: nothing was paid.
            is_temporary = error.code in (409, 429) or error.code >= 500
            if not is_temporary or attempt == ATTEMPTS:
                return error.code, error.headers, error.read()
            print(f"{error.code}: trying again")
            retry_after = error.headers.get("Retry-After", "")
            wait_seconds = int(retry_after) if retry_after.isdigit() else 1
        except (OSError, HTTPException):
            if attempt == ATTEMPTS:
                raise
            print("no answer: trying again")
        time.sleep(wait_seconds)


def find_service():
    with urlopen(f"{URL}/api/v1/discover?q=text+statistics&limit=1", timeout=30) as response:
        services = json.load(response)["services"]
    if not services:
        sys.exit("No service was found. Set TOLLGATE_SERVICE to the id of one.")
    return services[0]["id"]


service = os.environ.get("TOLLGATE_SERVICE") or find_service()
status, headers, answer = call_until_answered(
    f"/api/v1/proxy/{service}/", "How many words are these?".encode(), str(uuid.uuid4())
)
print(answer.decode())
if status >= 400:
    sys.exit(1)
print(f"paid ${headers['X-ACF-Amount']}, ${headers['X-ACF-Balance']} left")
