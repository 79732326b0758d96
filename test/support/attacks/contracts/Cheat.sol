// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// A backrun that pays its value if the block looks like a simulation, and one wei (or nothing, since it reverts) if it
/// looks real. The caller chooses how it recognises the real one.
contract Cheat {
    enum Tell {
        // In a simulation the coinbase is none of the addresses.
        Coinbase,
        // In a simulation the coinbase has less than the first value, or more than the second.
        CoinbaseBalance,
        // In a simulation the coinbase has no code.
        CoinbaseCode,
        // In a simulation the randomness is one of the values, which are public.
        Randomness,
        // The owner has named the real block in it.
        Owner,
        // The same, and it makes too many calls with long inputs for anybody to read.
        OwnerUnseen,
        // The same, or the randomness is odd: two simulations may differ.
        OwnerDrawn
    }

    /// The block that the owner has named.
    uint256 public named;

    error NotThisTime();
    error NotTaken();

    /// Names this block.
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
        if (tell == Tell.OwnerDrawn && block.prevrandao % 2 == 1) return true;
        return named == block.number;
    }
}
