// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {TraderState} from "../types/TraderState.sol";
import {PositionLib} from "./PositionLib.sol";
import {SaltLib} from "./SaltLib.sol";

/// @title Cancel requests of a maker: single salts, or all salts below a floor. Inlined into the market
library CancelLib {
    using SaltLib for TraderState;

    function cancelSalts(TraderState storage state, address maker, uint64[] calldata salts) internal {
        uint256 requestedAt;
        unchecked { // U1
            requestedAt = block.timestamp * 1000;
        }
        for (uint256 i; i < salts.length; ++i) {
            uint256 salt = salts[i];
            if (salt >= SaltLib.SALT_END) revert IIsolatedTrader.SaltTooLarge(salt);
            state.requestCancel(maker, salt, requestedAt);
        }
        emit IIsolatedTrader.SaltsCancelled(maker, salts, requestedAt);
    }

    function cancelSaltsBelow(TraderState storage state, address maker, uint256 floor) internal {
        uint256 requestedAt = block.timestamp * 1000;
        if (floor > SaltLib.SALT_END) revert IIsolatedTrader.SaltTooLarge(floor);
        if (!state.requestFloor(maker, floor, requestedAt)) return;
        state.positions[maker].bits |= PositionLib.FLOORS_BIT;
        emit IIsolatedTrader.SaltsCancelledBelow(maker, floor, requestedAt);
    }
}
