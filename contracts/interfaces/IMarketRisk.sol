// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Report} from "../types/Report.sol";
import {ActionTerms, DeleveragedLeg, InheritanceFailure, RiskTerms} from "../types/Risk.sol";

/**
 * @title What becomes of positions that the book did not take
 * @notice First the backstop inherits, an account that has agreed to; what it cannot take is closed against profitable
 * opposite positions. Both are actions in the market's queue, both judge by a verified report, and neither moves anything of
 * an account whose ratio is at its maintenance requirement or above.
 */
interface IMarketRisk {
    /// @notice Binds at once. Zero address: nobody inherits. `cap` in wei of notional.
    event BackstopChanged(address indexed backstop, uint96 cap);

    /**
     * @notice The backstop took over all of an account's position: size, entry notional and margin, as given here. Its own
     * position and this one became one (domain/liquidation.ts `merge`); the account is left with none.
     * @param margin Of the account, funding settled; may be negative.
     * @param freeDelta Change of the backstop's free balance, and the opposite change of its margin: less what it lacked to
     * IMR, or what was left where the two positions cancelled out.
     */
    event PositionInherited(
        uint256 indexed actionId,
        address indexed account,
        address indexed backstop,
        ActionTerms terms,
        int64 size,
        uint96 entryNotional,
        int256 margin,
        int96 freeDelta
    );

    /// @notice Nothing moved. `needed` and `available` are wei of notional (cap) or of free balance.
    event BackstopInheritanceFailed(
        uint256 indexed actionId,
        address indexed account,
        address indexed backstop,
        ActionTerms terms,
        InheritanceFailure reason,
        uint256 needed,
        uint256 available
    );

    /// @notice An account's position was closed against others, leg by leg in this order, each time at the value that left the
    /// account exactly nothing (domain/deleverage.ts `closeAgainst`). Legs without steps moved nothing.
    event PositionsDeleveraged(
        uint256 indexed actionId, address indexed account, ActionTerms terms, DeleveragedLeg[] legs
    );

    /// @notice The backstop cannot inherit from itself.
    error BackstopItself(address backstop);
    /// @notice The account asked to be backstop has not agreed to back this market.
    error BackstopUnwilling(address backstop);
    /// @notice The account has equity left, which the backstop could take over.
    error BackstopFirst(address account, address backstop, int256 equityX);
    error CounterpartiesInvalid(uint256 counterparties, uint256 steps);
    error CounterpartyRepeated(address counterparty);
    error StepsZero(address counterparty);
    /// @notice Counterparties come by score, the highest first, and by address where scores are equal.
    error CounterpartyOutOfOrder(address before, uint256 scoreBefore, address counterparty, uint256 score);

    /**
     * @notice Lets the backstop take over the position of an account whose ratio is below MMR. Operator only.
     * @dev Moves everything or nothing. Where the backstop is missing, would exceed its cap or lacks free balance, nothing
     * moves and the action is spent: what was queued behind it is not held up.
     */
    function inheritPosition(uint256 actionId, uint256 asOf, address account, Report calldata report) external;

    /**
     * @notice Closes the position of an account whose ratio is below MMR against `counterparties`, at its bankruptcy price and
     * without fees, where it has no equity left or the backstop cannot take it. Operator only.
     * @dev Each counterparty is judged here: opposite side, profit at the oracle price, equity, proceeds not negative. One
     * that does not qualify (any more) is passed over. Steps are cut to what both sides hold.
     * @param steps Asked of each counterparty, at least 1.
     */
    function deleverage(
        uint256 actionId,
        uint256 asOf,
        address account,
        address[] calldata counterparties,
        uint256[] calldata steps,
        Report calldata report
    ) external;

    /// @notice Names the backstop, which must have agreed (`IBackstop.backs`), and its cap. Zero: none. Binds at once; a former
    /// backstop keeps its position like any account. Not once the market has ended.
    function setBackstop(address backstop, uint96 cap) external;

    function riskTerms() external view returns (RiskTerms memory);
}
