// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Pays all that it is sent to whoever builds the block, or reverts. A bid is a call with its wei as the value.
contract Payer {
    receive() external payable {
        (bool paid,) = block.coinbase.call{value: msg.value}("");
        require(paid);
    }
}
