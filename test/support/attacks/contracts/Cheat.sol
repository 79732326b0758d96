// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// A backrun that pays what it is given where it takes the block for a simulation, and one wei (or nothing, since it
/// reverts) where it takes it for the real one. How it tells them apart is said by whoever calls it.
contract Cheat {
    enum Tell {
        // One of the addresses has code: contracts that were put there for measuring.
        Code,
        // The coinbase is none of the addresses.
        Coinbase,
        // The coinbase holds less than the first value, or more than the second.
        CoinbaseBalance,
        // The coinbase has no code.
        CoinbaseCode,
        // The randomness is one of the values: nothing, or what an earlier simulation had.
        Randomness,
        BaseFee,
        GasLimit,
        // The parent's hash, and what the history contract at the first address says of it.
        ParentHash,
        ParentHashInHistory,
        // One of the addresses was touched before, or the coinbase was not.
        Warmth,
        // The sender does not hold the first value, or one of the addresses holds anything.
        Balances,
        GasPrice,
        // The owner has not said that this is the block.
        Owner,
        // The same; and in the block there are more calls, with long inputs, than anybody wants to read.
        OwnerUnseen
    }

    /// The block that the owner has named.
    uint256 public named;

    error NotThisTime();
    error NotTaken();

    /// Names the block that this is in.
    function name() external {
        named = block.number;
    }

    function run(Tell tell, address[] calldata addresses, uint256[] calldata values, bool reverts) external payable {
        if (!isReal(tell, addresses, values)) return pay(msg.value);
        if (reverts) revert NotThisTime();
        if (tell == Tell.OwnerUnseen) hide();
        pay(1);
        (bool taken,) = msg.sender.call{value: msg.value - 1}("");
        if (!taken) revert NotTaken();
    }

    function pay(uint256 value) private {
        (bool taken,) = block.coinbase.call{value: value}("");
        if (!taken) revert NotTaken();
    }

    /// Calls that end at once, each with 32 KiB of input, until little gas is left.
    function hide() private view {
        assembly ("memory-safe") {
            for {} gt(gas(), 60000) {} { pop(staticcall(0, 255, 0, 32768, 0, 0)) }
        }
    }

    function isReal(Tell tell, address[] calldata addresses, uint256[] calldata values) private view returns (bool) {
        if (tell == Tell.Code) {
            for (uint256 i = 0; i < addresses.length; i++) if (addresses[i].code.length > 0) return false;
            return true;
        }
        if (tell == Tell.Coinbase) {
            for (uint256 i = 0; i < addresses.length; i++) if (addresses[i] == block.coinbase) return true;
            return false;
        }
        if (tell == Tell.CoinbaseBalance) {
            return block.coinbase.balance >= values[0] && block.coinbase.balance <= values[1];
        }
        if (tell == Tell.CoinbaseCode) return block.coinbase.code.length > 0;
        if (tell == Tell.Randomness) {
            for (uint256 i = 0; i < values.length; i++) if (values[i] == block.prevrandao) return false;
            return true;
        }
        if (tell == Tell.BaseFee) return block.basefee == values[0];
        if (tell == Tell.GasLimit) return block.gaslimit == values[0];
        if (tell == Tell.ParentHash) return uint256(blockhash(block.number - 1)) == values[0];
        if (tell == Tell.ParentHashInHistory) {
            (bool found, bytes memory hash) = addresses[0].staticcall(abi.encode(block.number - 1));
            return found && hash.length == 32 && abi.decode(hash, (uint256)) == values[0];
        }
        if (tell == Tell.Warmth) {
            for (uint256 i = 0; i < addresses.length; i++) if (isWarm(addresses[i])) return false;
            return isWarm(block.coinbase);
        }
        if (tell == Tell.Balances) {
            for (uint256 i = 0; i < addresses.length; i++) if (addresses[i].balance > 0) return false;
            return msg.sender.balance == values[0];
        }
        if (tell == Tell.GasPrice) return tx.gasprice == values[0];
        return named == block.number;
    }

    /// EIP-2929: what was touched before costs 100 gas, else 2,600. The compiler would leave out a balance that nobody needs.
    function isWarm(address one) private view returns (bool warm) {
        assembly ("memory-safe") {
            let before := gas()
            extcodecopy(one, 0, 0, 32)
            warm := lt(sub(before, gas()), 1000)
        }
    }
}
