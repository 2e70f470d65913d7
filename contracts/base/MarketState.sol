// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {OperatorStatus} from "../types/Market.sol";
import {MarketContext} from "../types/MarketContext.sol";
import {TraderState} from "../types/TraderState.sol";
import {Restricted} from "./Restricted.sol";

/// @title What every part of a market works on
abstract contract MarketState is Restricted {
    // ------------------------------------------------------------------ storage

    TraderState internal _state;

    mapping(address operator => OperatorStatus) internal _operators;

    // ------------------------------------------------------------------ modifiers

    modifier onlyOperator() {
        if (_operators[msg.sender] != OperatorStatus.Approved) revert IIsolatedTrader.NotOperator(msg.sender);
        _;
    }

    // ------------------------------------------------------------------ internals

    /// @dev For linked libraries: they run on this contract's storage but cannot see its immutables.
    function _context() internal view virtual returns (MarketContext memory);
}
