"""Flashbots' unmodified library for Python, driven by a test: `library.py RELAY_URL KEY`.

Each line of standard input is a list: the name of a function of `w3.flashbots`, and its arguments. Each line of output is its
result, or {"thrown": ...}. KEY signs the requests.
"""

import json
import sys

from eth_account import Account
from flashbots import flashbot
from hexbytes import HexBytes
from web3 import HTTPProvider, Web3

url, key = sys.argv[1:]
w3 = Web3(HTTPProvider(url))
flashbot(w3, Account.from_key(key), url)


def as_library(argument):
    """Lists are bundles of raw transactions, or of dicts with one each."""
    if not isinstance(argument, list):
        return argument
    return [
        {name: HexBytes(value) for name, value in one.items()} if isinstance(one, dict) else HexBytes(one)
        for one in argument
    ]


for line in sys.stdin:
    name, *arguments = json.loads(line)
    try:
        answer = getattr(w3.flashbots, name)(*map(as_library, arguments))
    except Exception as thrown:  # The error as a user sees it.
        answer = {"thrown": f"{type(thrown).__name__}: {thrown}"}
    print(Web3.to_json(answer), flush=True)
