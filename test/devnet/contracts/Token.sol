// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// The parts of ERC-20 (https://eips.ethereum.org/EIPS/eip-20) that a swap needs. For the dev chain only.
contract Token {
    string public symbol;
    uint8 public constant decimals = 18;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor(string memory symbol_, uint256 supply) {
        symbol = symbol_;
        mint(msg.sender, supply);
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        // Checked arithmetic: too small an allowance reverts.
        allowance[from][msg.sender] -= value;
        move(from, to, value);
        return true;
    }

    function mint(address to, uint256 value) internal {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function burn(address from, uint256 value) internal {
        balanceOf[from] -= value;
        totalSupply -= value;
        emit Transfer(from, address(0), value);
    }

    function move(address from, address to, uint256 value) private {
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}

/// Ether as a token, one for one.
contract WrappedEther is Token("WETH", 0) {
    function deposit() external payable {
        mint(msg.sender, msg.value);
    }

    function withdraw(uint256 value) external {
        burn(msg.sender, value);
        (bool sent,) = msg.sender.call{value: value}("");
        require(sent, "WETH: the ether was not taken");
    }
}
