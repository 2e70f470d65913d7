// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAdjustments} from "../interfaces/IAdjustments.sol";
import {IFunding} from "../interfaces/IFunding.sol";
import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {IMarketChanges} from "../interfaces/IMarketChanges.sol";
import {IMarketExit} from "../interfaces/IMarketExit.sol";
import {IMarketRisk} from "../interfaces/IMarketRisk.sol";
import {ContextLib} from "../libraries/ContextLib.sol";
import {AdjustLeverage, AdjustMargin} from "../types/Adjustment.sol";
import {MarketGrid, MarketMode, OperatorStatus, Parameters} from "../types/Market.sol";
import {MarketContext} from "../types/MarketContext.sol";
import {Order, SaltState} from "../types/Order.sol";
import {Position} from "../types/Position.sol";
import {Report} from "../types/Report.sol";
import {RiskTerms} from "../types/Risk.sol";
import {Clock, Floors, FundingRate, PendingChange, Poked, Reference, Wind} from "../types/TraderState.sol";
import {MarketState} from "./MarketState.sol";
import {Restricted} from "./Restricted.sol";

/**
 * @title The market's doors to everything that is not done often
 * @notice What is behind them is the code of `MarketDesk`, who may enter included; only roles are asked for here, because they
 * are read from the call's own data.
 */
abstract contract MarketDoors is MarketState, IIsolatedTrader, Restricted {
    address internal immutable _DESK;

    constructor(address code) {
        if (code.code.length == 0) revert AddressZero();
        _DESK = code;
    }

    /// @dev Ends the call as the desk's code ends it on this market's storage, for this call and its caller.
    function _atDesk() private {
        ContextLib.end(_handOn());
    }

    /// @dev As `_atDesk`, for what only looks. The compiler takes any delegatecall for a change; these functions of the desk are
    /// views, and who calls a view from outside lets nothing change.
    function _seenAtDesk() private view {
        function() internal returns (bool) handOn = _handOn;
        function() internal view returns (bool) look;
        assembly ("memory-safe") {
            look := handOn
        }
        ContextLib.end(look());
    }

    function _handOn() private returns (bool) {
        return ContextLib.handOn(_DESK, _context());
    }

    /// @dev The market's immutables, for code that cannot see them.
    function _context() internal view virtual returns (MarketContext memory);

    // ------------------------------------------------------------------ funding

    /// @inheritdoc IFunding
    function updateFunding(uint256, uint256, int96, uint48, Report calldata, Report calldata) external {
        _atDesk();
    }

    /// @inheritdoc IFunding
    function fundingRate() external view returns (FundingRate memory) {
        _seenAtDesk();
    }

    // ------------------------------------------------------------------ operators

    /// @inheritdoc IIsolatedTrader
    function proposeOperator(address) external restricted {
        _atDesk();
    }

    /// @inheritdoc IIsolatedTrader
    function acceptOperator() external {
        _atDesk();
    }

    /// @inheritdoc IIsolatedTrader
    function revokeOperator(address) external restricted {
        _atDesk();
    }

    /// @inheritdoc IIsolatedTrader
    function operatorStatus(address) external view returns (OperatorStatus) {
        _seenAtDesk();
    }

    // ------------------------------------------------------------------ changes

    /// @inheritdoc IMarketChanges
    function scheduleParameters(Parameters calldata, uint48) external restricted {
        _atDesk();
    }

    /// @inheritdoc IMarketChanges
    function cancelScheduledParameters() external restricted {
        _atDesk();
    }

    /// @inheritdoc IMarketChanges
    function scheduleMode(MarketMode, uint48) external restricted {
        _atDesk();
    }

    /// @inheritdoc IMarketChanges
    function restrictMode(MarketMode) external restricted {
        _atDesk();
    }

    // ------------------------------------------------------------------ risk

    /// @inheritdoc IMarketRisk
    function inheritPosition(uint256, uint256, address, Report calldata) external {
        _atDesk();
    }

    /// @inheritdoc IMarketRisk
    function deleverage(uint256, uint256, address, address[] calldata, uint256[] calldata, Report calldata) external {
        _atDesk();
    }

    /// @inheritdoc IMarketRisk
    function setBackstop(address, uint96) external restricted {
        _atDesk();
    }

    /// @inheritdoc IMarketRisk
    function riskTerms() external view returns (RiskTerms memory) {
        _seenAtDesk();
    }

    // ------------------------------------------------------------------ exit

    /// @inheritdoc IMarketExit
    function heartbeat() external {
        _atDesk();
    }

    /// @inheritdoc IMarketExit
    function requestFreeze() external {
        _atDesk();
    }

    /// @inheritdoc IMarketExit
    function poke(Report calldata) external {
        _atDesk();
    }

    /// @inheritdoc IMarketExit
    function freeze() external {
        _atDesk();
    }

    /// @inheritdoc IMarketExit
    function finalizeMarket(uint256, uint256, Report calldata) external {
        _atDesk();
    }

    /// @inheritdoc IMarketExit
    function listInsolvent(address[] calldata) external {
        _atDesk();
    }

    /// @inheritdoc IMarketExit
    function coverDeficit(uint96) external {
        _atDesk();
    }

    /// @inheritdoc IMarketExit
    function claim(address) external {
        _atDesk();
    }

    /// @inheritdoc IMarketExit
    function wind() external view returns (Wind memory) {
        _seenAtDesk();
    }

    /// @inheritdoc IMarketExit
    function poked() external view returns (Poked memory) {
        _seenAtDesk();
    }

    /// @inheritdoc IMarketExit
    function unpaidClaim(address) external view returns (uint256) {
        _seenAtDesk();
    }

    // ------------------------------------------------------------------ orders

    /// @inheritdoc IIsolatedTrader
    function hashOrder(Order calldata) external view returns (bytes32) {
        _seenAtDesk();
    }

    /// @inheritdoc IIsolatedTrader
    function validateOrder(Order calldata, bytes calldata, uint256) external view returns (bytes32, address) {
        _seenAtDesk();
    }

    /// @inheritdoc IIsolatedTrader
    function saltState(address, uint256) external view returns (SaltState) {
        _seenAtDesk();
    }

    /// @inheritdoc IIsolatedTrader
    function partialSlot(address, uint256) external view returns (uint256, uint256, uint256) {
        _seenAtDesk();
    }

    // ------------------------------------------------------------------ accounts

    /// @inheritdoc IIsolatedTrader
    function position(address) external view returns (Position memory) {
        _seenAtDesk();
    }

    /// @inheritdoc IIsolatedTrader
    function health(address, uint256) external view returns (int256, uint256) {
        _seenAtDesk();
    }

    /// @inheritdoc IIsolatedTrader
    function floors(address) external view returns (Floors memory) {
        _seenAtDesk();
    }

    /// @inheritdoc IAdjustments
    function hashMarginAdjustment(AdjustMargin calldata) external view returns (bytes32) {
        _seenAtDesk();
    }

    /// @inheritdoc IAdjustments
    function hashLeverageAdjustment(AdjustLeverage calldata) external view returns (bytes32) {
        _seenAtDesk();
    }

    /// @inheritdoc IAdjustments
    function isMarginNonceUsed(address, uint256) external view returns (bool) {
        _seenAtDesk();
    }

    // ------------------------------------------------------------------ the market's own state

    /// @inheritdoc IIsolatedTrader
    function grid() external view returns (MarketGrid memory) {
        _seenAtDesk();
    }

    /// @inheritdoc IIsolatedTrader
    function clock() external view returns (Clock memory) {
        _seenAtDesk();
    }

    /// @inheritdoc IIsolatedTrader
    function lastReference() external view returns (Reference memory) {
        _seenAtDesk();
    }

    /// @inheritdoc IIsolatedTrader
    function parameters() external view returns (Parameters memory) {
        _seenAtDesk();
    }

    /// @inheritdoc IIsolatedTrader
    function pendingChange() external view returns (PendingChange memory) {
        _seenAtDesk();
    }
}
