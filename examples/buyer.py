"""A buyer in Python, with the standard library only: finds a service, calls it, and reads what the call cost.

    TOLLGATE_URL=http://127.0.0.1:8080 TOLLGATE_KEY=acf_…:sk_… python3 examples/buyer.py
"""

import json
import os
import sys
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

if not os.environ.get("TOLLGATE_URL") or not os.environ.get("TOLLGATE_KEY"):
    sys.exit("Set TOLLGATE_URL and TOLLGATE_KEY. examples/README.md says how.")
URL = os.environ["TOLLGATE_URL"].rstrip("/")
KEY = os.environ["TOLLGATE_KEY"]


def find_service():
    """Finding services needs no key. Returns the id of one."""
    with urlopen(f"{URL}/api/v1/discover?q=text+statistics&limit=1", timeout=30) as response:
        services = json.load(response)["services"]
    if not services:
        sys.exit("No service was found. Set TOLLGATE_SERVICE to the id of one.")
    print(f"{services[0]['name']}: {services[0]['price_label']}")
    return services[0]["id"]


def call(path, body):
    """Calls a service. Returns the response, or raises HTTPError, which is a response too.

    A call that was refused for now is sent again, because a response without X-ACF-Amount, or with 0 in it, cost nothing.
    Any other exception means that there was no whole response: the call may have been charged, so look at
    GET /api/v1/usage/me before you repeat it.
    """
    headers = {
        "Authorization": f"Bearer {KEY}",
        "Content-Type": "text/plain; charset=utf-8",
        # A call that costs more than this is refused with 412, and free.
        "X-ACF-Max-Amount": "0.01",
    }
    for attempts_left in (2, 1, 0):
        try:
            return urlopen(Request(URL + path, data=body, headers=headers), timeout=60)
        except HTTPError as error:
            # A service may send a date here. Only the gateway always sends seconds.
            retry_after = error.headers.get("Retry-After", "")
            wait_seconds = int(retry_after) if retry_after.isdigit() else 0
            was_free = float(error.headers.get("X-ACF-Amount", 0)) == 0
            if error.code not in (429, 503) or not was_free or not wait_seconds or not attempts_left:
                raise
            print(f"refused with {error.code}: trying again in {wait_seconds} s")
            time.sleep(wait_seconds)


service = os.environ.get("TOLLGATE_SERVICE") or find_service()
try:
    with call(f"/api/v1/proxy/{service}/", "How many words are these?".encode()) as response:
        print(json.load(response))
        print(f"paid ${response.headers['X-ACF-Amount']}, ${response.headers['X-ACF-Balance']} left")
except HTTPError as error:
    # The same call again would fail again until the reason is gone, so this ends here.
    text = error.read().decode(errors="replace")
    if error.code == 402 and "X-ACF-Amount" not in error.headers:
        refusal = json.loads(text)
        if refusal["error"] != "insufficient_balance":
            sys.exit(refusal["message"])
        sys.exit(f"the call costs ${refusal['required']} and the account has ${refusal['balance']}: ask for a credit")
    sys.exit(f"{error.code} {text}")
