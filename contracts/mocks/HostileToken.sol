// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {TestUSDM} from "../TestUSDM.sol";

/// @title A token that calls back during transfers and returns false results
contract HostileToken is TestUSDM {
    enum Lie {
        None,
        /// Returns true without a transfer.
        Moved,
        /// Transfers and returns false.
        NotMoved,
        /// Debits the receiver instead of crediting it.
        Taken
    }

    Lie public lie;
    address public called;
    bytes public callback;

    function setLie(Lie next) external {
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
        // Reverts with the callee's error.
        assembly ("memory-safe") {
            revert(add(reason, 32), mload(reason))
        }
    }
}
