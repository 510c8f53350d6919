"""An orchestrator that gives each of its sub-agents fifty cents, with Python's standard library only.

The money stays in its own account: a sub-agent gets a key of its own, with which no more can be spent than that, however many calls
it makes at once.

    TOLLGATE_URL=http://127.0.0.1:8080 TOLLGATE_KEY=acf_…:sk_… python3 examples/orchestrator.py
"""

import json
import os
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

if not os.environ.get("TOLLGATE_URL") or not os.environ.get("TOLLGATE_KEY"):
    sys.exit("Set TOLLGATE_URL and TOLLGATE_KEY. examples/README.md says how.")
URL = os.environ["TOLLGATE_URL"].rstrip("/")


def ask(path, key, method="GET", body=None, headers={}):
    """Returns the response's JSON and headers. An error of the gateway is raised as HTTPError."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(URL + path, data, {"Authorization": f"Bearer {key}", **headers}, method=method)
    with urlopen(request, timeout=60) as response:
        return json.load(response), response.headers


def sub_agent(key):
    """What a sub-agent does with its key. A real one runs elsewhere and needs nothing else."""
    found, _ = ask("/api/v1/discover?q=text+statistics&limit=1", key)
    path = f"/api/v1/proxy/{os.environ.get('TOLLGATE_SERVICE') or found['services'][0]['id']}/?text=How+many+words"
    answer, headers = ask(path, key, headers={"X-ACF-Max-Amount": "0.01"})
    print(answer)
    print(f"paid ${headers['X-ACF-Amount']}, ${headers['X-ACF-Balance']} left")


own = os.environ["TOLLGATE_KEY"]
try:
    for label in ("researcher", "writer"):
        child, _ = ask("/api/v1/keys", own, "POST", {"label": label, "budget": {"amount": 0.5, "period": "total"}})
        try:
            sub_agent(f"{child['key_id']}:{child['secret']}")
        finally:
            ask(f"/api/v1/keys/{child['key_id']}", own, "DELETE")
except HTTPError as error:
    # 402 budget_exceeded: a sub-agent has spent its fifty cents. 402 insufficient_balance: the account has nothing left.
    sys.exit(f"{error.code} {error.read().decode(errors='replace')}")
# GET /api/v1/usage has in by_key what each of them has spent, a second after its last call has ended.
