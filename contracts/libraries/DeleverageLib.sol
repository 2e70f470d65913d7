// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IMarketRisk} from "../interfaces/IMarketRisk.sol";
import {Position} from "../types/Position.sol";
import {Valuation} from "../types/Risk.sol";
import {MarginLib} from "./MarginLib.sol";
import {PositionLib} from "./PositionLib.sol";

/**
 * @title One leg of a deleveraging: eligibility, rank and closing of a counterparty. Twin of domain/risk/deleverage.ts
 * @dev Positions come from storage, so the field widths of `PositionLib` bound them: sums of two do not overflow.
 */
library DeleverageLib {
    /// @notice The last counterparty that qualified, and its score; zero before the first.
    struct Rank {
        address counterparty;
        uint256 score;
    }

    /**
     * @notice (unrealised profit / entry notional) x (notional / equity), x 1e18, rounded down after each of the three divisions.
     * The score increases with profit and with leverage.
     * @return qualifies True if the position is not flat, has a profit before funding and positive equity after funding. The
     * score of a qualifying position may be 0.
     */
    function score(Position memory position, Valuation memory valuation)
        internal
        pure
        returns (bool qualifies, uint256 value)
    {
        (int256 equityX, uint256 notionalX) = MarginLib.exposure(position, valuation);
        // Value of the position beyond its margin.
        int256 profitX = equityX - position.margin * 1e18;
        uint256 entry = position.entryNotional;
        if (position.size == 0 || profitX <= 0 || equityX <= 0 || entry == 0) return (false, 0);
        uint256 gain = uint256(profitX) / entry;
        uint256 leverage = Math.mulDiv(notionalX, 1e18, uint256(equityX));
        return (true, Math.mulDiv(gain, leverage, 1e18));
    }

    /**
     * @notice Closes up to `asked` steps of both positions at the account's bankruptcy value: entry - margin of the closed share
     * for a long, entry + margin for a short, rounded as in any partial close. The account receives nothing, and the
     * counterparty receives the proceeds.
     * @dev The counterparty must hold the opposite side. It is skipped if its proceeds would be negative.
     * @return steps 0 if nothing moved.
     * @return payout Credit to the counterparty's free balance.
     */
    function closeAgainst(Position memory position, Position memory counterparty, uint256 asked)
        internal
        pure
        returns (uint256 steps, uint256 payout)
    {
        bool long = position.size > 0;
        steps = Math.min(asked, Math.min(PositionLib.abs(position.size), PositionLib.abs(counterparty.size)));
        (int256 released, uint256 entry) = PositionLib.closedShare(position, steps, long);
        (int256 otherReleased, uint256 otherEntry) = PositionLib.closedShare(counterparty, steps, !long);
        int256 proceeds = long
            // The counterparty sold at its entry and buys back at the account's entry less the account's margin.
            ? otherReleased + int256(otherEntry) - (int256(entry) - released)
            : otherReleased + (int256(entry) + released) - int256(otherEntry);
        if (proceeds < 0) return (0, 0);
        _reduce(position, steps, released, entry);
        _reduce(counterparty, steps, otherReleased, otherEntry);
        return (steps, uint256(proceeds));
    }

    /// @notice Reverts unless there are as many steps as counterparties, no steps are zero, and no counterparty repeats.
    function requireDistinct(address[] calldata counterparties, uint256[] calldata steps) internal pure {
        if (counterparties.length == 0 || counterparties.length != steps.length) {
            revert IMarketRisk.CounterpartiesInvalid(counterparties.length, steps.length);
        }
        for (uint256 i; i < counterparties.length; ++i) {
            address counterparty = counterparties[i];
            if (steps[i] == 0) revert IMarketRisk.StepsZero(counterparty);
            for (uint256 j; j < i; ++j) {
                if (counterparties[j] == counterparty) revert IMarketRisk.CounterpartyRepeated(counterparty);
            }
        }
    }

    /// @notice Reverts unless the counterparty ranks behind the last one that qualified, which it then replaces.
    function requireRank(Rank memory last, address counterparty, uint256 scored) internal pure {
        bool first = last.counterparty == address(0);
        bool inOrder = scored < last.score || (scored == last.score && counterparty > last.counterparty);
        if (!first && !inOrder) {
            revert IMarketRisk.CounterpartyOutOfOrder(last.counterparty, last.score, counterparty, scored);
        }
        (last.counterparty, last.score) = (counterparty, scored);
    }

    function opposes(Position memory position, Position memory counterparty) internal pure returns (bool) {
        return position.size > 0 ? counterparty.size < 0 : position.size < 0 && counterparty.size > 0;
    }

    function _reduce(Position memory position, uint256 steps, int256 released, uint256 entry) private pure {
        // `steps` is at most the size of the position, which is < 2^53.
        position.size += position.size > 0 ? -int256(steps) : int256(steps);
        position.entryNotional -= entry;
        position.margin -= released;
    }
}
