// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {PositionLib} from "../../contracts/libraries/PositionLib.sol";
import {Position} from "../../contracts/types/Position.sol";

/// @title Properties of `PositionLib` within the bounds of row U6 (contracts/README.md)
/// @custom:library PositionLib
/// @custom:fuzzed test/parity/position.test.ts
contract PositionProofs {
    int256 private constant SIZE_END = 1 << 53;
    int256 private constant MARGIN_END = 1 << 149;

    function _requireBounds(Position memory position) private pure {
        require(position.size > -SIZE_END && position.size < SIZE_END && position.entryNotional < 1 << 92);
        require(position.margin > -MARGIN_END && position.margin < MARGIN_END);
    }

    /// @notice The steps that close are at most the fill and at most the position; none if the fill is on the same side.
    function closingIsBounded(int256 size, bool buy, uint256 fill) external pure {
        require(size > -SIZE_END && size < SIZE_END && fill < 1 << 48);
        uint256 closing = PositionLib.closingSteps(size, buy, fill);
        assert(closing <= fill && closing <= PositionLib.abs(size));
        assert(closing == 0 || (size > 0) != buy);
        assert(closing == fill || closing == PositionLib.abs(size) || (size > 0) == buy);
    }

    /// @notice Released margin rounds down, by less than 1 wei.
    function releasedRoundsDown(Position memory position, uint256 closing) external pure {
        _requireBounds(position);
        require(position.size > 0 && closing > 0 && closing <= uint256(position.size));
        (int256 released,) = PositionLib.closedShare(position, closing, true);
        assert(released * position.size <= position.margin * int256(closing));
        assert((released + 1) * position.size > position.margin * int256(closing));
    }

    /// @notice The closed share of the entry of a long rounds up, by less than 1 wei, and never exceeds it.
    function closedEntryOfALongRoundsUp(Position memory position, uint256 closing) external pure {
        _requireBounds(position);
        require(position.size > 0 && closing > 0 && closing <= uint256(position.size));
        (, uint256 entry) = PositionLib.closedShare(position, closing, true);
        assert(entry <= position.entryNotional);
        assert(entry * uint256(position.size) >= position.entryNotional * closing);
        assert(entry == 0 || (entry - 1) * uint256(position.size) < position.entryNotional * closing);
    }

    /// @notice The closed share of the entry of a short rounds down, by less than 1 wei.
    function closedEntryOfAShortRoundsDown(Position memory position, uint256 closing) external pure {
        _requireBounds(position);
        require(position.size < 0 && closing > 0 && closing <= uint256(-position.size));
        (, uint256 entry) = PositionLib.closedShare(position, closing, false);
        uint256 held = uint256(-position.size);
        assert(entry * held <= position.entryNotional * closing);
        assert((entry + 1) * held > position.entryNotional * closing);
    }

    /// @notice Closing all steps releases the whole margin and entry.
    function closingAllReleasesAll(Position memory position) external pure {
        _requireBounds(position);
        require(position.size != 0);
        (int256 released, uint256 entry) =
            PositionLib.closedShare(position, PositionLib.abs(position.size), position.size > 0);
        assert(released == position.margin && entry == position.entryNotional);
    }

    /// @notice A partial close never lowers the equity per step of a long's remainder, so its ratio does not fall.
    function remainderOfALongIsNotWorse(Position memory position, uint256 closing) external pure {
        _requireBounds(position);
        require(position.size > 0 && closing > 0 && closing < uint256(position.size));
        (int256 released, uint256 entry) = PositionLib.closedShare(position, closing, true);
        int256 before = position.margin - int256(position.entryNotional);
        int256 rest = (position.margin - released) - int256(position.entryNotional - entry);
        assert(rest * position.size >= before * (position.size - int256(closing)));
    }

    /// @notice A partial close never lowers the equity per step of a short's remainder, so its ratio does not fall.
    function remainderOfAShortIsNotWorse(Position memory position, uint256 closing) external pure {
        _requireBounds(position);
        require(position.size < 0 && closing > 0 && closing < uint256(-position.size));
        (int256 released, uint256 entry) = PositionLib.closedShare(position, closing, false);
        int256 held = -position.size;
        int256 before = position.margin + int256(position.entryNotional);
        int256 rest = (position.margin - released) + int256(position.entryNotional - entry);
        assert(rest * held >= before * (held - int256(closing)));
    }
}
