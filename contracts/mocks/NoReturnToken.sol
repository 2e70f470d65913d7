// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {TestUSDM} from "../TestUSDM.sol";

/// @title A token whose functions return no data, like early ERC-20 tokens
contract NoReturnToken is TestUSDM {
    function transfer(address to, uint256 amount) public override returns (bool) {
        super.transfer(to, amount);
        _answerNothing();
    }

    function transferFrom(address from, address to, uint256 amount) public override returns (bool) {
        super.transferFrom(from, to, amount);
        _answerNothing();
    }

    function approve(address spender, uint256 amount) public override returns (bool) {
        super.approve(spender, amount);
        _answerNothing();
    }

    function _answerNothing() private pure {
        assembly ("memory-safe") {
            return(0, 0)
        }
    }
}
