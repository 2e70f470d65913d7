// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {SaltLib} from "../libraries/SaltLib.sol";
import {SaltState} from "../types/Order.sol";
import {RecordBody, RecordHead} from "../types/OrderRecord.sol";
import {TraderState} from "../types/TraderState.sol";

/// @title Exposes `SaltLib` without a market, for parity tests with an unpacked model
contract SaltHarness {
    using SaltLib for TraderState;

    TraderState private _state;

    /// @notice Executes calls of the functions below in sequence. A call that reverts changes nothing.
    /// @return taken Whether each call succeeded.
    /// @return answers Return data or revert data of each call.
    function take(bytes[] calldata steps) external returns (bool[] memory taken, bytes[] memory answers) {
        (taken, answers) = (new bool[](steps.length), new bytes[](steps.length));
        for (uint256 i; i < steps.length; ++i) {
            (taken[i], answers[i]) = address(this).call(steps[i]);
        }
    }

    function consume(RecordHead head, RecordBody body, uint256 batchId, uint256 asOf) external returns (bool dead) {
        return _state.consume(head, body, batchId, asOf);
    }

    function requestCancel(address maker, uint256 salt, uint256 requestedAt) external {
        _state.requestCancel(maker, salt, requestedAt);
    }

    function requestFloor(address maker, uint256 floor, uint256 requestedAt) external returns (bool raised) {
        return _state.requestFloor(maker, floor, requestedAt);
    }

    function requireAlive(address maker, uint256 salt, uint256 asOf) external view {
        _state.requireAlive(maker, salt, asOf);
    }

    function stateOf(address maker, uint256 salt) external view returns (SaltState) {
        return _state.stateOf(maker, salt);
    }

    function readSlot(address maker, uint256 index) external view returns (uint256, uint256, uint256) {
        return _state.readSlot(maker, index);
    }
}
