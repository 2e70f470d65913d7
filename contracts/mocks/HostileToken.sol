// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {TestUSDM} from "../TestUSDM.sol";

/// @title A token that calls back while it moves what it moves, and lies about it
contract HostileToken is TestUSDM {
    enum Lie {
        None,
        /// Says that it has moved what it has not.
        Moved,
        /// Moves, and says that it has not.
        NotMoved,
        /// Takes from the receiver what it pretends to give.
        Taken
    }

    Lie public lie;
    address public called;
    bytes public callback;

    function tell(Lie next) external {
        lie = next;
    }

    function callBack(address to, bytes calldata data) external {
        called = to;
        callback = data;
    }

    function transferFrom(address from, address to, uint256 amount) public override returns (bool) {
        if (lie == Lie.Moved) return true;
        if (lie == Lie.Taken) {
            _update(to, address(this), 1);
            return true;
        }
        super.transferFrom(from, to, amount);
        return lie != Lie.NotMoved;
    }

    function transfer(address to, uint256 amount) public override returns (bool) {
        super.transfer(to, amount);
        return lie != Lie.NotMoved;
    }

    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, amount);
        if (called == address(0) || from == address(0)) return;
        (bool done, bytes memory reason) = called.call(callback);
        if (done) return;
        // Hands the refusal on as it is.
        assembly ("memory-safe") {
            revert(add(reason, 32), mload(reason))
        }
    }
}
