"""A wallet on unmodified web3.py, driven by a test: `wallet.py URL KEY CONTRACT REVERTER`. Runs the steps of docs/wallets.md that
every library was tested with, and prints the results as JSON. CONTRACT emits an event, REVERTER reverts. Blocks arrive
meanwhile.
"""

import json
import sys
import time

from eth_account import Account
from web3 import HTTPProvider, Web3
from web3.exceptions import Web3Exception

url, key, contract, reverter = sys.argv[1:]
w3 = Web3(HTTPProvider(url))
account = Account.from_key(key)
contract = Web3.to_checksum_address(contract)


def send(**fields):
    """Signs and sends a transaction. Fills in fields as the library would."""
    base = w3.eth.get_block("latest").baseFeePerGas
    tip = fields.pop("tip", w3.to_wei(1, "gwei"))
    whole = {
        "type": 2,
        "chainId": w3.eth.chain_id,
        "nonce": w3.eth.get_transaction_count(account.address, "pending"),
        "to": account.address,
        "value": 0,
        "maxPriorityFeePerGas": tip,
        "maxFeePerGas": 2 * base + tip,
        **fields,
    }
    if "gas" not in whole:
        whole["gas"] = w3.eth.estimate_gas({"from": account.address, "to": whole["to"], "value": whole["value"]})
    signed = account.sign_transaction(whole)
    # Its name differs between web3.py 6 and 8.
    raw = signed.raw_transaction if hasattr(signed, "raw_transaction") else signed.rawTransaction
    return w3.eth.send_raw_transaction(raw)


def polled(log_filter):
    """A filter's entries, polled as programs do: they may arrive a moment after the receipt."""
    until = time.monotonic() + 20
    entries = []
    while not entries and time.monotonic() < until:
        entries = log_filter.get_new_entries()
        time.sleep(0.05)
    return entries


told = {"balance": w3.eth.get_balance(account.address), "gasPrice": w3.eth.gas_price}
blocks = w3.eth.filter("latest")
logs = w3.eth.filter({"address": contract})

first = send(value=1)
told["pending"] = w3.eth.get_transaction(first)["blockNumber"]
told["nonce"] = w3.eth.get_transaction_count(account.address, "pending")
receipt = w3.eth.wait_for_transaction_receipt(first, timeout=40)
told["transfer"] = [receipt.status, receipt.transactionHash == first]
told["hash"] = w3.eth.get_transaction(first)["hash"] == first
told["inBlock"] = first in w3.eth.get_block(receipt.blockNumber).transactions

called = w3.eth.wait_for_transaction_receipt(send(to=contract, gas=100_000), timeout=40)
told["contract"] = [called.status, len(called.logs)]
told["logs"] = len(w3.eth.get_logs({"address": contract, "fromBlock": called.blockNumber}))
told["filters"] = [len(polled(blocks)) > 0, len(polled(logs))]

nonce = w3.eth.get_transaction_count(account.address, "pending")
# It fails, so no block contains it before it is replaced.
replaced = send(to=Web3.to_checksum_address(reverter), gas=100_000, nonce=nonce)
replacing = send(value=2, nonce=nonce, tip=w3.to_wei(30, "gwei"))
told["replacement"] = [w3.eth.wait_for_transaction_receipt(replacing, timeout=40).status, replaced != replacing]
try:
    send(nonce=0)
except ValueError as refused:
    told["refusal"] = refused.args[0]
except Web3Exception as refused:
    told["refusal"] = refused.rpc_response["error"]
print(json.dumps(told))
