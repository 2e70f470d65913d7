// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {Position} from "../types/Position.sol";
import {FillOutcome, OrderFill, PartTerms} from "../types/Settlement.sol";
import {FeeLib} from "./FeeLib.sol";

/**
 * @title Positions: their one slot, and what a fill does to them
 * @notice Slot, from the low bit: size int64 | entry notional uint92 | folded margin int92 | leverage 7 | cancel floor 1.
 * `folded = margin + size * fundingIndex`, so funding is settled by reading. Twin of domain/position.ts.
 */
library PositionLib {
    /// @dev Steps are safe integers outside the chain.
    int256 internal constant SIZE_END = 1 << 53;
    uint256 internal constant ENTRY_END = 1 << 92;
    int256 internal constant FOLDED_END = 1 << 91;
    int256 internal constant DELTA_END = 1 << 95;
    uint256 internal constant CANCEL_FLOOR_BIT = 1 << 255;

    // ------------------------------------------------------------------ slot

    function unpack(uint256 word, int256 fundingIndex) internal pure returns (Position memory position) {
        int256 size;
        int256 folded;
        assembly ("memory-safe") {
            size := signextend(7, word)
            // Bits 156..247 to the top, then down again with the sign.
            folded := sar(164, shl(8, word))
        }
        position.size = size;
        position.entryNotional = (word >> 64) & (ENTRY_END - 1);
        position.leverage = (word >> 248) & 0x7f;
        position.hasCancelFloor = word & CANCEL_FLOOR_BIT != 0;
        // Cannot overflow: |folded| < 2^91, |size| < 2^53, |fundingIndex| < 2^95.
        unchecked {
            position.margin = folded - size * fundingIndex;
        }
    }

    function pack(Position memory position, int256 fundingIndex, address account) internal pure returns (uint256 word) {
        int256 size = position.size;
        int256 folded = position.margin + size * fundingIndex;
        uint256 entry = position.entryNotional;
        if (
            size >= SIZE_END || size <= -SIZE_END || entry >= ENTRY_END || folded >= FOLDED_END || folded <= -FOLDED_END
        ) revert ISettlementErrors.PositionOutOfRange(account);

        word = (uint256(size) & type(uint64).max) | (entry << 64) | ((uint256(folded) & (ENTRY_END - 1)) << 156)
            | (position.leverage << 248);
        if (position.hasCancelFloor) word |= CANCEL_FLOOR_BIT;
    }

    // ------------------------------------------------------------------ fills

    /**
     * @notice Applies one fill to `position` in memory: first the share that closes, then the share that grows or opens.
     * Taker quantity falls on the closing share first.
     * @return outcome Money that moved between the position and the free balance.
     * @return opened Whether any share grew, opened or flipped the position.
     */
    function applyFill(Position memory position, OrderFill memory order, PartTerms memory terms)
        internal
        pure
        returns (FillOutcome memory outcome, bool opened)
    {
        uint256 closing = closingSteps(position.size, order.buy, order.fill);
        if (order.reduceOnly && closing != order.fill) {
            revert ISettlementErrors.ReduceOnlyExceeded(order.maker, order.salt, closing, order.fill);
        }
        uint256 closingTaker = order.taker < closing ? order.taker : closing;

        if (closing != 0) _close(position, order, terms, closing, closingTaker, outcome);
        if (closing != order.fill) {
            opened = true;
            // Both differences are not negative: closing <= fill, closingTaker <= taker.
            unchecked {
                _grow(position, order, terms, order.fill - closing, order.taker - closingTaker, outcome);
            }
        }
        if (outcome.freeDelta >= DELTA_END || outcome.freeDelta < -DELTA_END) {
            revert ISettlementErrors.AmountOutOfRange(order.maker, order.salt, outcome.freeDelta);
        }
    }

    /// @notice How much of a fill closes the position; the rest of it opens.
    function closingSteps(int256 size, bool buy, uint256 fill) internal pure returns (uint256) {
        if (size == 0 || (size > 0) == buy) return 0;
        // |size| < 2^53.
        uint256 held = size > 0 ? uint256(size) : uint256(-size);
        return fill < held ? fill : held;
    }

    /**
     * @dev Released margin rounds down; the closed share of entry rounds for the remainder, long up, short down: the ratio of
     * the rest is never worse than before. The fee is capped by the proceeds.
     */
    function _close(
        Position memory position,
        OrderFill memory order,
        PartTerms memory terms,
        uint256 closing,
        uint256 taker,
        FillOutcome memory outcome
    ) private pure {
        int256 size = position.size;
        bool long = size > 0;
        uint256 held = long ? uint256(size) : uint256(-size);
        (int256 released, uint256 entry) = _closedShare(position, held, closing, long);

        int256 value = int256(closing * terms.stepNotional);
        int256 proceeds = released + (long ? value - int256(entry) : int256(entry) - value);
        if (proceeds < 0) revert ISettlementErrors.ProceedsNegative(order.maker, order.salt, proceeds);

        uint256 fee = FeeLib.ofFill(terms, closing - taker, taker);
        if (fee > uint256(proceeds)) {
            fee = uint256(proceeds);
            outcome.feeCapped = true;
        }
        outcome.fee = fee;
        outcome.freeDelta = proceeds - int256(fee);
        position.size = long ? size - int256(closing) : size + int256(closing);
        position.entryNotional -= entry;
        position.margin -= released;
    }

    function _closedShare(Position memory position, uint256 held, uint256 closing, bool long)
        private
        pure
        returns (int256 released, uint256 entry)
    {
        if (closing == held) return (position.margin, position.entryNotional);
        // Cannot overflow: |margin| < 2^150, entry < 2^92, closing <= held < 2^53.
        unchecked {
            int256 share = position.margin * int256(closing);
            released = share / int256(held);
            if (share < 0 && share % int256(held) != 0) released -= 1;
            entry = position.entryNotional * closing;
            entry = long ? (entry + held - 1) / held : entry / held;
        }
    }

    function _grow(
        Position memory position,
        OrderFill memory order,
        PartTerms memory terms,
        uint256 opening,
        uint256 taker,
        FillOutcome memory outcome
    ) private pure {
        uint256 added = openingMarginPerStep(order, terms) * opening;
        uint256 fee = FeeLib.ofFill(terms, opening - taker, taker);
        outcome.fee += fee;
        outcome.freeDelta -= int256(added + fee);
        position.size = order.buy ? position.size + int256(opening) : position.size - int256(opening);
        position.entryNotional += opening * terms.stepNotional;
        position.margin += int256(added);
        position.leverage = order.leverage;
    }

    /**
     * @notice Margin of one opened step at the order's leverage, rounded up. A buy is margined at the clearing price; a sell at
     * its signed limit, so that a better fill brings profit rather than a larger debit; a market sell at the clearing or oracle
     * price, the lower; a binary sell at 1 less the clearing price.
     */
    function openingMarginPerStep(OrderFill memory order, PartTerms memory terms) internal pure returns (uint256) {
        uint256 leverage = order.leverage;
        uint256 basis;
        if (order.buy) {
            basis = terms.stepNotional;
        } else if (terms.binary) {
            // Price 1 on one step is `step` wei; the band keeps the clearing price below 1.
            basis = terms.step - terms.stepNotional;
        } else if (order.price != 0) {
            basis = order.price * terms.tickStepValue;
        } else {
            uint256 clearingX = terms.stepNotional * 1e18;
            uint256 basisX = clearingX < terms.oracleStepX ? clearingX : terms.oracleStepX;
            return _ceilDiv(basisX, leverage * 1e18);
        }
        return _ceilDiv(basis, leverage);
    }

    function _ceilDiv(uint256 amount, uint256 divisor) private pure returns (uint256) {
        return (amount + divisor - 1) / divisor;
    }
}
