// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// A market of a kind: `set` leaves something to be had, and a backrun pays as much of what it is given as there is to be had.
contract Share {
    uint256 public left;

    event Left(uint256);

    error NotTaken();

    function set(uint256 hundredths) external {
        left = hundredths;
        emit Left(hundredths);
    }

    function run() external payable {
        uint256 paid = (msg.value * left) / 100;
        (bool taken,) = block.coinbase.call{value: paid}("");
        if (!taken) revert NotTaken();
        (taken,) = msg.sender.call{value: msg.value - paid}("");
        if (!taken) revert NotTaken();
    }
}
