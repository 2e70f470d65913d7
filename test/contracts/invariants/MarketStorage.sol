// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {PositionLib} from "../../../contracts/libraries/PositionLib.sol";
import {Position} from "../../../contracts/types/Position.sol";
import {Clock, Reference} from "../../../contracts/types/TraderState.sol";
import {vm} from "./Vm.sol";

// Fields of a market read from its storage, which takes a tenth of the time of its views. The slots are those of `TraderState`.
// The invariants compare them with the views.

uint256 constant CLOCK_SLOT = 0;
uint256 constant REFERENCE_SLOT = 1;
uint256 constant POSITIONS_SLOT = 16;

/// @dev Without the terms of the batch.
function clockOf(address market) view returns (Clock memory clock) {
    uint256 word = uint256(vm.load(market, bytes32(CLOCK_SLOT)));
    clock.actionId = uint48(word);
    clock.batchId = uint48(word >> 48);
    clock.asOf = uint48(word >> 96);
}

/// @dev Without the flags.
function referenceOf(address market) view returns (Reference memory last) {
    uint256 word = uint256(vm.load(market, bytes32(REFERENCE_SLOT)));
    last.oraclePrice = uint96(word);
    last.observedAt = uint48(word >> 96);
    last.fundingIndex = int96(uint96(word >> 144));
}

function positionOf(address market, address account, int256 fundingIndex) view returns (Position memory held) {
    bytes32 slot;
    assembly ("memory-safe") {
        mstore(0, account)
        mstore(32, POSITIONS_SLOT)
        slot := keccak256(0, 64)
    }
    PositionLib.unpack(uint256(vm.load(market, slot)), fundingIndex, held);
}
