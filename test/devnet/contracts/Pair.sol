// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {Token} from "./Token.sol";

/// A minimal constant-product pool of WETH and a token, with a fee of 0.3 %. It has no shares: added amounts stay.
/// For the dev chain only.
contract Pair {
    Token public immutable weth;
    Token public immutable token;
    uint256 public wethReserve;
    uint256 public tokenReserve;

    event Swap(address indexed sender, address indexed tokenIn, uint256 amountIn, uint256 amountOut);

    error NotOfThisPair(address tokenIn);
    error TooLittleOut(uint256 amountOut, uint256 atLeast);

    constructor(Token weth_, Token token_) {
        weth = weth_;
        token = token_;
    }

    function reserves() external view returns (uint256, uint256) {
        return (wethReserve, tokenReserve);
    }

    /// Takes both amounts from the caller, who must have approved them. They can't be withdrawn.
    function add(uint256 wethAmount, uint256 tokenAmount) external {
        weth.transferFrom(msg.sender, address(this), wethAmount);
        token.transferFrom(msg.sender, address(this), tokenAmount);
        wethReserve += wethAmount;
        tokenReserve += tokenAmount;
    }

    /// Takes `amountIn` of `tokenIn`, which the caller must have approved, and pays the other token.
    function swap(address tokenIn, uint256 amountIn, uint256 atLeast) external returns (uint256 amountOut) {
        bool sellsWeth = tokenIn == address(weth);
        if (!sellsWeth && tokenIn != address(token)) revert NotOfThisPair(tokenIn);
        (uint256 reserveIn, uint256 reserveOut) =
            sellsWeth ? (wethReserve, tokenReserve) : (tokenReserve, wethReserve);
        uint256 withoutFee = amountIn * 997;
        amountOut = (withoutFee * reserveOut) / (reserveIn * 1000 + withoutFee);
        if (amountOut < atLeast) revert TooLittleOut(amountOut, atLeast);
        (wethReserve, tokenReserve) = sellsWeth
            ? (reserveIn + amountIn, reserveOut - amountOut)
            : (reserveOut - amountOut, reserveIn + amountIn);
        (sellsWeth ? weth : token).transferFrom(msg.sender, address(this), amountIn);
        (sellsWeth ? token : weth).transfer(msg.sender, amountOut);
        emit Swap(msg.sender, tokenIn, amountIn, amountOut);
    }
}
