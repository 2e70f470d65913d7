// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {OperatorStatus} from "../types/Market.sol";
import {TraderState} from "../types/TraderState.sol";

/// @title The storage of a market
/// @dev First base contract of the market and of its extension, so that both use the same slots.
abstract contract MarketState {
    // ------------------------------------------------------------------ storage

    TraderState internal _state;

    mapping(address operator => OperatorStatus) internal _operators;
    /// @dev Number of approved operators.
    uint256 internal _operatorCount;

    // ------------------------------------------------------------------ modifiers

    modifier onlyOperator() {
        if (_operators[msg.sender] != OperatorStatus.Approved) revert IIsolatedTrader.NotOperator(msg.sender);
        _;
    }
}
