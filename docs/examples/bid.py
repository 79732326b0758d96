"""Watches the relay's feed and bids on each transaction. The backrun only pays the block's builder, by the contract of Payer.sol.
Yours would earn something first. Prints the outcomes of its bids, and ends when one is in a block.

    RELAY_WS_URL=ws://127.0.0.1:8080 PRIVATE_KEY=0x... PAYER=0x... python3 docs/examples/bid.py
"""

import json
import os
from collections import deque

from eth_account import Account
from web3 import Web3
from websockets.sync.client import connect

if "PRIVATE_KEY" not in os.environ or "PAYER" not in os.environ:
    raise SystemExit("set PRIVATE_KEY, and PAYER to the contract's address")
RELAY_WS_URL = os.environ.get("RELAY_WS_URL", "ws://127.0.0.1:8080")
PAYER = Web3.to_checksum_address(os.environ["PAYER"])
BID_WEI = 10**12
GWEI = 10**9

account = Account.from_key(os.environ["PRIVATE_KEY"])
socket = connect(RELAY_WS_URL)
news = deque()
last_id = 0


def receive():
    """The next message. Keeps notifications in `news`."""
    message = json.loads(socket.recv())
    if "params" in message:
        news.append(message["params"]["result"])
    return message


def call(method, *params):
    """Calls a method of the relay over the websocket."""
    global last_id
    last_id += 1
    socket.send(json.dumps({"jsonrpc": "2.0", "id": last_id, "method": method, "params": params}))
    answer = {}
    while answer.get("id") != last_id:
        answer = receive()
    if "error" in answer:
        raise ValueError(answer["error"]["message"])
    return answer["result"]


def bid_on(target):
    """Bids for the next block, and subscribes to the outcome."""
    head = call("eth_getBlockByNumber", "latest", False)
    backrun = account.sign_transaction(
        {
            "type": 2,
            "chainId": chain_id,
            "nonce": int(call("eth_getTransactionCount", account.address, "latest"), 16),
            "to": PAYER,
            "value": BID_WEI,
            "gas": 60_000,
            "maxPriorityFeePerGas": GWEI,
            "maxFeePerGas": 2 * int(head["baseFeePerGas"], 16) + GWEI,
        }
    ).raw_transaction
    block = hex(int(head["number"], 16) + 1)
    bundle = call("eth_sendBundle", {"txs": [target, Web3.to_hex(backrun)], "blockNumber": block})
    print(f"bid {BID_WEI} wei on {target}: bundle {bundle}", flush=True)
    call("eth_subscribe", "service_bundleStatus", bundle)


chain_id = int(call("eth_chainId"), 16)
call("eth_subscribe", "service_partialPendingTransactions")
print(f"{account.address} watches {RELAY_WS_URL}", flush=True)
stage = None
while stage != "INCLUDED":
    while not news:
        receive()
    one = news.popleft()
    if "bundleHash" in one:
        stage = one["stage"]
        print(f"bundle {one['bundleHash']} in block {one['blockNumber']}: {stage} {one['reason'] or ''}".rstrip(), flush=True)
    else:
        try:
            bid_on(one["hash"])
        except ValueError as refused:
            print(f"refused: {refused}", flush=True)
socket.close()
