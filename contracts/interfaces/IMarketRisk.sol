// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Report} from "../types/Report.sol";
import {ActionTerms, DeleveragedLeg, InheritanceFailure, RiskTerms} from "../types/Risk.sol";

/**
 * @title Inheritance by the backstop, and deleveraging
 * @notice Handles positions that forced orders did not close. The backstop, an account that has agreed to, inherits a position.
 * If it cannot, the position is closed against profitable opposite positions. Both are actions of the market, use a verified
 * report, and revert for an account whose ratio >= MMR. For PAUSE_GRACE after a pause of the bank both revert with
 * `LiquidationTooSoon` for an account with equity.
 */
interface IMarketRisk {
    /// @notice Effective immediately. Zero address: no backstop. `cap` in wei of notional.
    event BackstopChanged(address indexed backstop, uint96 cap);

    /**
     * @notice The backstop inherited the account's whole position, with this size, entry notional and margin. It was merged into
     * the backstop's position (domain/risk/liquidation.ts `merge`); the account's position is empty.
     * @param margin Of the account, including settled funding; may be negative.
     * @param freeDelta Change of the backstop's free balance, and the opposite change of its margin: minus the margin missing to
     * IMR, or plus the margin left if the two positions netted to zero.
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

    /// @notice The inheritance failed and nothing moved. `needed` and `available` are wei of notional (cap) or of free balance.
    event BackstopInheritanceFailed(
        uint256 indexed actionId,
        address indexed account,
        address indexed backstop,
        ActionTerms terms,
        InheritanceFailure reason,
        uint256 needed,
        uint256 available
    );

    /// @notice An account's position was closed against the counterparties of `legs`, in this order, at the account's bankruptcy
    /// value (domain/risk/deleverage.ts `closeAgainst`). Legs without steps moved nothing.
    event PositionsDeleveraged(
        uint256 indexed actionId, address indexed account, ActionTerms terms, DeleveragedLeg[] legs
    );

    /// @notice The backstop cannot inherit from itself.
    error BackstopItself(address backstop);
    /// @notice The proposed backstop has not agreed to back this market.
    error BackstopUnwilling(address backstop);
    /// @notice The account has equity left, and the backstop can inherit: inheritance comes first.
    error BackstopFirst(address account, address backstop, int256 equityX);
    error CounterpartiesInvalid(uint256 counterparties, uint256 steps);
    error CounterpartyRepeated(address counterparty);
    error StepsZero(address counterparty);
    /// @notice Counterparties must be ordered by descending score, then by ascending address.
    error CounterpartyOutOfOrder(address before, uint256 scoreBefore, address counterparty, uint256 score);

    /**
     * @notice Moves the position of an account with ratio < MMR to the backstop. Operator only.
     * @dev Moves the whole position or nothing. If there is no backstop, its cap would be exceeded or its free balance is
     * insufficient, nothing moves, but the action number is used: later actions can proceed.
     */
    function inheritPosition(uint256 actionId, uint256 asOf, address account, Report calldata report) external;

    /**
     * @notice Closes the position of an account with ratio < MMR against `counterparties`, at its bankruptcy price and without
     * fees. Requires that the account has no equity left or the backstop cannot inherit. Operator only.
     * @dev Each counterparty is checked on chain: opposite side, profit at the oracle price, positive equity, proceeds not
     * negative. A counterparty that does not qualify is skipped. Steps are capped at the sizes of both positions.
     * @param steps Requested of each counterparty, at least 1.
     */
    function deleverage(
        uint256 actionId,
        uint256 asOf,
        address account,
        address[] calldata counterparties,
        uint256[] calldata steps,
        Report calldata report
    ) external;

    /// @notice Sets the backstop, which must have agreed (`IBackstop.backs`), and its cap. Zero address: no backstop. Effective
    /// immediately; a former backstop keeps its position. Reverts after the end of the market. Restricted.
    function setBackstop(address backstop, uint96 cap) external;

    /// @notice The backstop and its cap.
    function riskTerms() external view returns (RiskTerms memory);
}
