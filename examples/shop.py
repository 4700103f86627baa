"""A worker of a shop: it asks which page a visitor gets, and tells later whether the visitor bought anything.

    python examples/shop.py anna 300        # in one terminal
    python examples/shop.py ben 300         # in another one

The server is that of `lighttail serve`, or LIGHTTAIL_URL with the key LIGHTTAIL_KEY. A visitor buys up to
LONGEST seconds after the visit (8 unless a third argument says otherwise); the others are never told."""

import heapq
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request

URL = os.environ.get("LIGHTTAIL_URL", "http://127.0.0.1:8710")
KEY = os.environ.get("LIGHTTAIL_KEY")
RATES = {"control": 0.03, "blue": 0.05, "green": 0.04}  # the truth, which nobody knows
PAUSE = 0.03  # seconds between two visitors


def call(path, body):
    """Send a request until it is answered. The same key, or the same ids, make it safe to send again."""
    headers = {"Content-Type": "application/json"}
    if KEY:
        headers["Authorization"] = f"Bearer {KEY}"
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code != 503:  # anything but "not now" is a mistake of ours: show the sentence
                sys.exit(json.load(error)["error"]["message"])
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass  # the server is being restarted
        time.sleep(0.2)


def main(worker, visits, longest):
    buys = []  # (when, id of the trial)
    for visit in range(visits):
        trial = call("/v1/experiments/shop/ask", {"key": f"{worker} {visit}"})["trials"][0]
        if random.random() < RATES[trial["arm"]]:
            heapq.heappush(buys, (time.time() + random.uniform(0.0, longest), trial["id"]))
        while buys and buys[0][0] <= time.time():
            tell(heapq.heappop(buys)[1])
        time.sleep(PAUSE)
    while buys:
        time.sleep(max(0.0, buys[0][0] - time.time()))
        tell(heapq.heappop(buys)[1])


def tell(id):
    told = call("/v1/experiments/shop/tell", {"rewards": [{"id": id, "reward": 1}]})
    print(f"trial {id} bought something: {told}")


if __name__ == "__main__":
    worker, visits, longest = (*sys.argv[1:], *("anna", "300", "8")[len(sys.argv) - 1 :])
    main(worker, int(visits), float(longest))
