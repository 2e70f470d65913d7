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

    /// @notice Released margin rounds down.
    function releasedRoundsDown(Position memory position, uint256 closing) external pure {
        _requireBounds(position);
        require(position.size > 0 && closing > 0 && closing <= uint256(position.size));
        (int256 released,) = PositionLib.closedShare(position, closing, true);
        assert(released * position.size <= position.margin * int256(closing));
    }

    /// @notice Released margin is less than 1 wei below the exact share.
    function releasedIsWithinOneWei(Position memory position, uint256 closing) external pure {
        _requireBounds(position);
        require(position.size > 0 && closing > 0 && closing <= uint256(position.size));
        (int256 released,) = PositionLib.closedShare(position, closing, true);
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

    /// @notice A partial close never lowers the equity per step of a long's remainder, so its ratio does not fall, given that
    /// released margin rounds down and the closed entry up.
    function remainderOfALongIsNotWorse(int256 margin, int256 entry, int256 size, int256 closing, int256 released, int256 closed)
        external
        pure
    {
        require(0 < closing && closing < size && size < SIZE_END && 0 <= entry && entry < 1 << 92);
        require(margin > -MARGIN_END && margin < MARGIN_END && released > -MARGIN_END && released < MARGIN_END);
        require(0 <= closed && closed <= entry);
        require(released * size <= margin * closing && closed * size >= entry * closing);
        assert((margin - released - (entry - closed)) * size >= (margin - entry) * (size - closing));
    }

    /// @notice A partial close never lowers the equity per step of a short's remainder, so its ratio does not fall, given that
    /// released margin and the closed entry round down.
    function remainderOfAShortIsNotWorse(int256 margin, int256 entry, int256 held, int256 closing, int256 released, int256 closed)
        external
        pure
    {
        require(0 < closing && closing < held && held < SIZE_END && 0 <= entry && entry < 1 << 92);
        require(margin > -MARGIN_END && margin < MARGIN_END && released > -MARGIN_END && released < MARGIN_END);
        require(0 <= closed && closed <= entry);
        require(released * held <= margin * closing && closed * held <= entry * closing);
        assert((margin - released + (entry - closed)) * held >= (margin + entry) * (held - closing));
    }
}
