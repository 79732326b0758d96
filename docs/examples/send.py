"""Sends a private transaction, and prints its events until it is in a block.

    RELAY_URL=http://127.0.0.1:8080 PRIVATE_KEY=0x... python3 docs/examples/send.py
"""

import json
import os

import requests
from eth_account import Account
from web3 import HTTPProvider, Web3

if "PRIVATE_KEY" not in os.environ:
    raise SystemExit("set PRIVATE_KEY")
RELAY_URL = os.environ.get("RELAY_URL", "http://127.0.0.1:8080")

w3 = Web3(HTTPProvider(f"{RELAY_URL}/fast"))
account = Account.from_key(os.environ["PRIVATE_KEY"])
tip = w3.to_wei(1, "gwei")
signed = account.sign_transaction(
    {
        "type": 2,
        "chainId": w3.eth.chain_id,
        "nonce": w3.eth.get_transaction_count(account.address, "pending"),
        "to": account.address,
        "value": 1,
        "gas": 21_000,
        "maxPriorityFeePerGas": tip,
        "maxFeePerGas": 2 * w3.eth.get_block("latest").baseFeePerGas + tip,
    }
)
tx_hash = w3.to_hex(w3.eth.send_raw_transaction(signed.raw_transaction))
print(f"sent {tx_hash}", flush=True)

# Each event is a line of JSON after "data: ". A broken stream can be requested again.
headers = {"Accept": "text/event-stream"}
with requests.get(f"{RELAY_URL}/tx/{tx_hash}/events", headers=headers, stream=True, timeout=60) as life:
    for line in life.iter_lines(chunk_size=1, decode_unicode=True):
        if not line.startswith("data: "):
            continue
        event = json.loads(line[len("data: ") :])
        block = f" (block {event['block']})" if "block" in event else ""
        print(f"{event['type']}{block}", flush=True)
        if event["type"] == "included":
            break
