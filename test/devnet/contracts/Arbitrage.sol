// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {Pair} from "./Pair.sol";
import {Token, WrappedEther} from "./Token.sol";

/// A searcher's contract. It holds his WETH, buys with it in one pool, sells in another, and pays the bid to whoever
/// builds the block; anything but a gain above the bid reverts, so that a bid that fails costs nothing.
contract Arbitrage {
    address public immutable owner;
    WrappedEther public immutable weth;

    error NotTheOwner();
    error NotProfitable(uint256 got, uint256 needed);
    error BidNotTaken();

    constructor(WrappedEther weth_) {
        owner = msg.sender;
        weth = weth_;
    }

    modifier onlyOwner() {
        if (msg.sender != owner) revert NotTheOwner();
        _;
    }

    /// WETH of the amount `amountIn` is turned into the token in `buyAt`, and back into WETH in `sellAt`. `bid` wei of
    /// what that gains go to the block's coinbase, the rest stays here.
    function backrun(Pair buyAt, Pair sellAt, uint256 amountIn, uint256 bid) external onlyOwner {
        Token token = buyAt.token();
        weth.approve(address(buyAt), amountIn);
        uint256 bought = buyAt.swap(address(weth), amountIn, 0);
        token.approve(address(sellAt), bought);
        uint256 got = sellAt.swap(address(token), bought, 0);
        if (got < amountIn + bid) revert NotProfitable(got, amountIn + bid);
        weth.withdraw(bid);
        // The coinbase of the block it lands in is not known before: it is never written into a bid, always asked.
        (bool taken,) = block.coinbase.call{value: bid}("");
        if (!taken) revert BidNotTaken();
    }

    function withdraw(uint256 amount) external onlyOwner {
        weth.transfer(owner, amount);
    }

    /// WETH pays out the bid to here.
    receive() external payable {}
}
