// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {RecordBody, RecordHead} from "../types/OrderRecord.sol";
import {Position} from "../types/Position.sol";
import {PartTerms} from "../types/Settlement.sol";
import {FeeLib} from "./FeeLib.sol";

/**
 * @title Positions: the packed storage slot, and the effect of a fill
 * @notice Slot, from the low bit: size int64 | entry notional uint92 | folded margin int92 | leverage 7 | has floors 1.
 * `folded = margin + size * fundingIndex`, so reading a position settles its funding. Twin of domain/positions/position.ts.
 *
 * The arithmetic is unchecked because field widths bound it (row U6 in contracts/README.md): |size| < 2^53, a fill < 2^48,
 * at most 200 fills per part; entry < 2^92; |folded| < 2^91 and |funding index| < 2^95, so |margin| < 2^149; a price < 2^40
 * ticks, tick and step < 2^80. One step is therefore worth < 2^141, and a part changes an account by < 2^197. `pack` reverts if
 * a field does not fit.
 */
library PositionLib {
    /// @dev Steps are safe integers outside the chain.
    int256 internal constant SIZE_MAX = (1 << 53) - 1;
    uint256 internal constant ENTRY_END = 1 << 92;
    int256 internal constant FOLDED_MAX = (1 << 91) - 1;
    uint256 internal constant FLOORS_BIT = 1 << 255;

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
        position.hasFloors = word & FLOORS_BIT != 0;
        unchecked { // U6
            position.margin = folded - size * fundingIndex;
        }
    }

    function pack(Position memory position, int256 fundingIndex, address account) internal pure returns (uint256 word) {
        unchecked { // U6
            int256 size = position.size;
            int256 folded = position.margin + size * fundingIndex;
            uint256 entry = position.entryNotional;
            // One comparison per signed field: after adding the maximum, a value outside the range exceeds twice the maximum.
            uint256 sizeUp = uint256(size + SIZE_MAX);
            uint256 foldedUp = uint256(folded + FOLDED_MAX);
            bool outside;
            assembly ("memory-safe") {
                outside := or(gt(sizeUp, 0x3ffffffffffffe), gt(foldedUp, 0xffffffffffffffffffffffe))
                outside := or(outside, gt(entry, 0xfffffffffffffffffffffff))
            }
            if (outside) revert ISettlementErrors.PositionOutOfRange(account);

            word = (uint256(size) & type(uint64).max) | (entry << 64) | ((uint256(folded) & (ENTRY_END - 1)) << 156)
                | (position.leverage << 248);
            if (position.hasFloors) word |= FLOORS_BIT;
        }
    }

    /// @notice The slot with `moved` added to the margin. Stored (folded) margin and margin differ by a constant, so both change
    /// by `moved`.
    function addMargin(uint256 word, int256 moved, address account)
        internal
        pure
        returns (uint256 changed, int256 folded)
    {
        // A sum that does not fit 256 bits wraps to a value that is outside the bounds too.
        assembly ("memory-safe") {
            folded := add(sar(164, shl(8, word)), moved)
        }
        if (folded > FOLDED_MAX || folded < -FOLDED_MAX) revert ISettlementErrors.PositionOutOfRange(account);
        uint256 field = (ENTRY_END - 1) << 156;
        changed = (word & ~field) | ((uint256(folded) << 156) & field);
    }

    function withLeverage(uint256 word, uint256 leverage) internal pure returns (uint256) {
        return (word & ~(uint256(0x7f) << 248)) | (leverage << 248);
    }

    // ------------------------------------------------------------------ fills

    /**
     * @notice Applies one fill to `position` in memory: first the share that closes, then the share that grows or opens.
     * Taker quantity is assigned to the closing share first.
     * @return opened Whether any share grew, opened or flipped the position.
     * @return freeDelta Change of the account's free balance, fee included.
     * @return fee Charged for both shares.
     * @return capped True if the closing fee was reduced to the close proceeds.
     */
    function applyFill(Position memory position, RecordHead head, RecordBody body, PartTerms memory terms)
        internal
        pure
        returns (bool opened, int256 freeDelta, uint256 fee, bool capped)
    {
        unchecked { // U6
            uint256 closing = closingSteps(position.size, body.isBuy(), head.fill());
            if (closing != 0) (freeDelta, fee, capped) = _close(position, head, body, terms, closing);
            opened = closing != head.fill();
            if (!opened) return (opened, freeDelta, fee, capped);
            if (body.isReduceOnly()) {
                revert ISettlementErrors.ReduceOnlyExceeded(head.maker(), body.salt(), closing, head.fill());
            }
            (uint256 added, uint256 openingFee) = _grow(position, head, body, terms, closing);
            freeDelta -= int256(added + openingFee);
            fee += openingFee;
        }
    }

    /// @notice Steps of the fill that close the position; the remaining steps open.
    function closingSteps(int256 size, bool buy, uint256 fill) internal pure returns (uint256) {
        if (size == 0 || (size > 0) == buy) return 0;
        uint256 held = abs(size);
        return fill < held ? fill : held;
    }

    /**
     * @dev Released margin rounds down. The closed share of the entry notional rounds in favour of the remainder: up for a long,
     * down for a short. The margin ratio of the remainder therefore never falls. The fee is capped at the proceeds.
     */
    function _close(
        Position memory position,
        RecordHead head,
        RecordBody body,
        PartTerms memory terms,
        uint256 closing
    ) private pure returns (int256 freeDelta, uint256 fee, bool capped) {
        unchecked { // U6
            int256 size = position.size;
            (int256 released, uint256 entry) = closedShare(position, closing, size > 0);
            int256 profit = int256(closing * terms.stepNotional) - int256(entry);
            int256 proceeds = size > 0 ? released + profit : released - profit;
            if (proceeds < 0) revert ISettlementErrors.ProceedsNegative(head.maker(), body.salt(), proceeds);

            uint256 taker = body.taker();
            if (taker > closing) taker = closing;
            fee = FeeLib.ofFill(terms, closing - taker, taker);
            capped = fee > uint256(proceeds);
            if (capped) fee = uint256(proceeds);
            freeDelta = proceeds - int256(fee);
            position.size = size > 0 ? size - int256(closing) : size + int256(closing);
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
        unchecked { // U6
            int256 share = released * int256(closing);
            released = share / int256(held);
            if (share < 0 && share % int256(held) != 0) released -= 1;
            entry *= closing;
            entry = long ? _divUp(entry, held) : entry / held;
        }
    }

    /// @dev Applies the steps of the fill beyond `closing`.
    function _grow(
        Position memory position,
        RecordHead head,
        RecordBody body,
        PartTerms memory terms,
        uint256 closing
    ) private pure returns (uint256 added, uint256 fee) {
        unchecked { // U6
            uint256 opening = head.fill() - closing;
            uint256 taker = body.taker();
            taker = taker > closing ? taker - closing : 0;
            added = openingMarginPerStep(body, terms) * opening;
            fee = FeeLib.ofFill(terms, opening - taker, taker);
            position.size = body.isBuy() ? position.size + int256(opening) : position.size - int256(opening);
            position.entryNotional += opening * terms.stepNotional;
            position.margin += int256(added);
            position.leverage = body.leverage();
        }
    }

    /**
     * @notice Margin of one opened step at the order's leverage, rounded up. Price used: the clearing price for a buy; the signed
     * limit for a limit sell, so that a better fill adds profit instead of a larger debit; min(clearing price, oracle price)
     * for a market sell; 1 - clearing price for a binary sell.
     */
    function openingMarginPerStep(RecordBody body, PartTerms memory terms) internal pure returns (uint256) {
        unchecked { // U6
            uint256 leverage = body.leverage();
            if (body.isBuy()) return _divUp(terms.stepNotional, leverage);
            // Price 1 on one step is `step` wei; the band keeps the clearing price below 1.
            if (terms.binary) return _divUp(terms.step - terms.stepNotional, leverage);
            uint256 limit = body.price();
            if (limit != 0) return _divUp(limit * terms.tickStepValue, leverage);
            uint256 clearingX = terms.stepNotional * 1e18;
            uint256 basisX = clearingX < terms.oracleStepX ? clearingX : terms.oracleStepX;
            return _divUp(basisX, leverage * 1e18);
        }
    }

    // ------------------------------------------------------------------ internals

    function abs(int256 size) internal pure returns (uint256) {
        unchecked { // U6
            return uint256(size < 0 ? -size : size);
        }
    }

    /// @dev The divisor is not zero: it is a leverage that `OrderLib` has checked, or the size of a position that is not flat.
    function _divUp(uint256 amount, uint256 divisor) private pure returns (uint256) {
        unchecked { // U6
            return (amount + divisor - 1) / divisor;
        }
    }
}
