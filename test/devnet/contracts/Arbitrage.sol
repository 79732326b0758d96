// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {Pair} from "./Pair.sol";
import {Token, WrappedEther} from "./Token.sol";

/// A searcher's contract. It holds the searcher's WETH, buys a token in one pool, sells it in another, and pays the bid
/// to the block's builder. It reverts unless it gains more than the bid, so a failed bid costs nothing.
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

    /// Swaps `amountIn` WETH to the token in `buyAt`, and back to WETH in `sellAt`. `bid` wei of the gain go to the
    /// block's coinbase, the rest stays here.
    function backrun(Pair buyAt, Pair sellAt, uint256 amountIn, uint256 bid) external onlyOwner {
        Token token = buyAt.token();
        weth.approve(address(buyAt), amountIn);
        uint256 bought = buyAt.swap(address(weth), amountIn, 0);
        token.approve(address(sellAt), bought);
        uint256 got = sellAt.swap(address(token), bought, 0);
        if (got < amountIn + bid) revert NotProfitable(got, amountIn + bid);
        weth.withdraw(bid);
        // The block's coinbase is not known before, so no bid can contain it.
        (bool taken,) = block.coinbase.call{value: bid}("");
        if (!taken) revert BidNotTaken();
    }

    function withdraw(uint256 amount) external onlyOwner {
        weth.transfer(owner, amount);
    }

    /// Receives the bid from the WETH contract.
    receive() external payable {}
}
