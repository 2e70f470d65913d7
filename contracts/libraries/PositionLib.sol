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
 *
 * The arithmetic is unchecked because widths bound it: |size| < 2^53, a fill < 2^48 and 200 of them a part; entry < 2^92;
 * |folded| < 2^91, |funding index| < 2^95, so |margin| < 2^149; a price below 2^40 ticks, tick and step below 2^80, so one
 * step is worth less than 2^141 and a part changes an account by less than 2^197. `pack` refuses what does not fit.
 */
library PositionLib {
    /// @dev Steps are safe integers outside the chain.
    int256 internal constant SIZE_MAX = (1 << 53) - 1;
    uint256 internal constant ENTRY_END = 1 << 92;
    int256 internal constant FOLDED_MAX = (1 << 91) - 1;
    uint256 internal constant CANCEL_FLOOR_BIT = 1 << 255;

    // ------------------------------------------------------------------ slot

    /// @notice Unpacks a slot into `position`, which is reused from account to account.
    function unpack(uint256 word, int256 fundingIndex, Position memory position) internal pure {
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
        unchecked {
            position.margin = folded - size * fundingIndex;
        }
    }

    function pack(Position memory position, int256 fundingIndex, address account) internal pure returns (uint256 word) {
        unchecked {
            int256 size = position.size;
            int256 folded = position.margin + size * fundingIndex;
            uint256 entry = position.entryNotional;
            // One comparison per signed field: shifted up by its maximum, everything else lies above twice the maximum.
            if (
                entry >= ENTRY_END || uint256(size + SIZE_MAX) > uint256(2 * SIZE_MAX)
                    || uint256(folded + FOLDED_MAX) > uint256(2 * FOLDED_MAX)
            ) revert ISettlementErrors.PositionOutOfRange(account);

            word = (uint256(size) & type(uint64).max) | (entry << 64) | ((uint256(folded) & (ENTRY_END - 1)) << 156)
                | (position.leverage << 248);
            if (position.hasCancelFloor) word |= CANCEL_FLOOR_BIT;
        }
    }

    // ------------------------------------------------------------------ fills

    /**
     * @notice Applies one fill to `position` in memory: first the share that closes, then the share that grows or opens.
     * Taker quantity falls on the closing share first.
     * @param outcome Receives the money that moved between the position and the free balance.
     * @return opened Whether any share grew, opened or flipped the position.
     */
    function applyFill(
        Position memory position,
        OrderFill memory order,
        PartTerms memory terms,
        FillOutcome memory outcome
    ) internal pure returns (bool opened) {
        unchecked {
            uint256 fill = order.fill;
            uint256 taker = order.taker;
            uint256 closing = closingSteps(position.size, order.buy, fill);
            if (order.reduceOnly && closing != fill) {
                revert ISettlementErrors.ReduceOnlyExceeded(order.maker, order.salt, closing, fill);
            }
            outcome.feeCapped = false;
            if (closing == 0) {
                outcome.fee = 0;
                outcome.freeDelta = 0;
                _grow(position, order, terms, fill, taker, outcome);
                return true;
            }
            uint256 closingTaker = taker < closing ? taker : closing;
            _close(position, order, terms, closing, closingTaker, outcome);
            if (closing == fill) return false;
            _grow(position, order, terms, fill - closing, taker - closingTaker, outcome);
            return true;
        }
    }

    /// @notice How much of a fill closes the position; the rest of it opens.
    function closingSteps(int256 size, bool buy, uint256 fill) internal pure returns (uint256) {
        if (size == 0 || (size > 0) == buy) return 0;
        uint256 held = abs(size);
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
        unchecked {
            bool long = position.size > 0;
            (int256 released, uint256 entry) = closedShare(position, closing, long);
            int256 profit = int256(closing * terms.stepNotional) - int256(entry);
            int256 proceeds = long ? released + profit : released - profit;
            if (proceeds < 0) revert ISettlementErrors.ProceedsNegative(order.maker, order.salt, proceeds);

            uint256 fee = FeeLib.ofFill(terms, closing - taker, taker);
            if (fee > uint256(proceeds)) {
                fee = uint256(proceeds);
                outcome.feeCapped = true;
            }
            outcome.fee = fee;
            outcome.freeDelta = proceeds - int256(fee);
            position.size = long ? position.size - int256(closing) : position.size + int256(closing);
            position.entryNotional -= entry;
            position.margin -= released;
        }
    }

    function closedShare(Position memory position, uint256 closing, bool long)
        internal
        pure
        returns (int256 released, uint256 entry)
    {
        uint256 held = abs(position.size);
        released = position.margin;
        entry = position.entryNotional;
        if (closing == held) return (released, entry);
        unchecked {
            int256 share = released * int256(closing);
            released = share / int256(held);
            if (share < 0 && share % int256(held) != 0) released -= 1;
            entry *= closing;
            entry = long ? _divUp(entry, held) : entry / held;
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
        unchecked {
            uint256 added = openingMarginPerStep(order, terms) * opening;
            uint256 fee = FeeLib.ofFill(terms, opening - taker, taker);
            outcome.fee += fee;
            outcome.freeDelta -= int256(added + fee);
            position.size = order.buy ? position.size + int256(opening) : position.size - int256(opening);
            position.entryNotional += opening * terms.stepNotional;
            position.margin += int256(added);
            position.leverage = order.leverage;
        }
    }

    /**
     * @notice Margin of one opened step at the order's leverage, rounded up. A buy is margined at the clearing price; a sell at
     * its signed limit, so that a better fill brings profit rather than a larger debit; a market sell at the clearing or oracle
     * price, the lower; a binary sell at 1 less the clearing price.
     */
    function openingMarginPerStep(OrderFill memory order, PartTerms memory terms) internal pure returns (uint256) {
        unchecked {
            if (order.buy) return _divUp(terms.stepNotional, order.leverage);
            // Price 1 on one step is `step` wei; the band keeps the clearing price below 1.
            if (terms.binary) return _divUp(terms.step - terms.stepNotional, order.leverage);
            if (order.price != 0) return _divUp(order.price * terms.tickStepValue, order.leverage);
            uint256 clearingX = terms.stepNotional * 1e18;
            uint256 basisX = clearingX < terms.oracleStepX ? clearingX : terms.oracleStepX;
            return _divUp(basisX, order.leverage * 1e18);
        }
    }

    // ------------------------------------------------------------------ internals

    function abs(int256 size) internal pure returns (uint256) {
        unchecked {
            return uint256(size < 0 ? -size : size);
        }
    }

    /// @dev The divisor is not zero: leverage is checked, a closed position is not flat.
    function _divUp(uint256 amount, uint256 divisor) private pure returns (uint256) {
        unchecked {
            return (amount + divisor - 1) / divisor;
        }
    }
}
