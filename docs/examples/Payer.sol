// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Forwards all that it receives to the block's builder, or reverts. A bid is a call with the bid in wei as the value.
contract Payer {
    receive() external payable {
        (bool paid,) = block.coinbase.call{value: msg.value}("");
        require(paid);
    }
}
