// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAdjustments} from "../interfaces/IAdjustments.sol";
import {IFunding} from "../interfaces/IFunding.sol";
import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {IMarketChanges} from "../interfaces/IMarketChanges.sol";
import {IMarketWindDown} from "../interfaces/IMarketWindDown.sol";
import {IMarketRisk} from "../interfaces/IMarketRisk.sol";
import {ContextLib} from "../libraries/ContextLib.sol";
import {AdjustLeverage, AdjustMargin} from "../types/Adjustment.sol";
import {MarketGrid, MarketMode, OperatorStatus, Parameters} from "../types/Market.sol";
import {MarketContext} from "../types/MarketContext.sol";
import {Order, SaltState} from "../types/Order.sol";
import {Position} from "../types/Position.sol";
import {Report} from "../types/Report.sol";
import {RiskTerms} from "../types/Risk.sol";
import {Clock, Ending, Floors, FundingRate, PendingChange, Poked, Reference, WindDown} from "../types/TraderState.sol";
import {MarketState} from "./MarketState.sol";
import {Restricted} from "./Restricted.sol";

/**
 * @title The functions of a market that delegate to its extension
 * @notice Each function runs the code of `MarketExtension` on the market's storage. The extension checks operators and market
 * state; roles are checked here, because `restricted` reads the selector from the call's own data.
 */
abstract contract MarketDelegator is MarketState, IIsolatedTrader, Restricted {
    address internal immutable _EXTENSION;

    constructor(address code) {
        if (code.code.length == 0) revert AddressZero();
        _EXTENSION = code;
    }

    /// @dev Delegates the current call to the extension and returns or reverts with its answer. Does not return to the caller.
    function _delegate() private {
        ContextLib.finish(_delegateCall());
    }

    /// @dev `_delegate` for views. The compiler treats `delegatecall` as state-changing, so the function is cast to `view`. The
    /// extension declares these functions as views, and an external caller of a view uses STATICCALL.
    function _staticDelegate() internal view {
        function() internal returns (bool) delegateCall = _delegateCall;
        function() internal view returns (bool) viewCall;
        assembly ("memory-safe") {
            viewCall := delegateCall
        }
        ContextLib.finish(viewCall());
    }

    function _delegateCall() private returns (bool) {
        return ContextLib.delegateCall(_EXTENSION, _context());
    }

    /// @dev The market's immutables, for code that cannot see them.
    function _context() internal view virtual returns (MarketContext memory);

    // ------------------------------------------------------------------ funding

    /// @inheritdoc IFunding
    function updateFunding(uint256, uint256, int96, uint48, Report calldata, Report calldata) external {
        _delegate();
    }

    /// @inheritdoc IFunding
    function fundingRate() external view returns (FundingRate memory) {
        _staticDelegate();
    }

    // ------------------------------------------------------------------ operators

    /// @inheritdoc IIsolatedTrader
    function proposeOperator(address) external restricted {
        _delegate();
    }

    /// @inheritdoc IIsolatedTrader
    function acceptOperator() external {
        _delegate();
    }

    /// @inheritdoc IIsolatedTrader
    function revokeOperator(address) external restricted {
        _delegate();
    }

    /// @inheritdoc IIsolatedTrader
    function operatorStatus(address) external view returns (OperatorStatus) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function readiness() external view returns (MarketMode mode, uint256 operators) {
        _staticDelegate();
    }

    // ------------------------------------------------------------------ changes

    /// @inheritdoc IMarketChanges
    function scheduleParameters(Parameters calldata, uint48) external restricted {
        _delegate();
    }

    /// @inheritdoc IMarketChanges
    function cancelScheduledParameters() external restricted {
        _delegate();
    }

    /// @inheritdoc IMarketChanges
    function scheduleMode(MarketMode, uint48) external restricted {
        _delegate();
    }

    /// @inheritdoc IMarketChanges
    function restrictMode(MarketMode) external restricted {
        _delegate();
    }

    /// @inheritdoc IMarketChanges
    function extendExpiry(uint48) external restricted {
        _delegate();
    }

    /// @inheritdoc IMarketChanges
    function extendDisputeWindow(uint48) external restricted {
        _delegate();
    }

    // ------------------------------------------------------------------ risk

    /// @inheritdoc IMarketRisk
    function inheritPosition(uint256, uint256, address, Report calldata) external {
        _delegate();
    }

    /// @inheritdoc IMarketRisk
    function deleverage(uint256, uint256, address, address[] calldata, uint256[] calldata, Report calldata) external {
        _delegate();
    }

    /// @inheritdoc IMarketRisk
    function setBackstop(address, uint96) external restricted {
        _delegate();
    }

    /// @inheritdoc IMarketRisk
    function riskTerms() external view returns (RiskTerms memory) {
        _staticDelegate();
    }

    // ------------------------------------------------------------------ wind-down

    /// @inheritdoc IMarketWindDown
    function heartbeat() external {
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function requestFreeze() external {
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function poke(Report calldata) external {
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function freeze() external {
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function submitFinalReport(Report calldata) external {
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function finalizeMarket(uint256, uint256) external {
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function reportInsolvent(address[] calldata) external {
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function coverDeficit(uint96) external {
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function claim(address) external {
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function windDown() external view returns (WindDown memory) {
        _staticDelegate();
    }

    /// @inheritdoc IMarketWindDown
    function poked() external view returns (Poked memory) {
        _staticDelegate();
    }

    /// @inheritdoc IMarketWindDown
    function ending() external view returns (Ending memory) {
        _staticDelegate();
    }

    /// @inheritdoc IMarketWindDown
    function unpaidClaim(address) external view returns (uint256) {
        _staticDelegate();
    }

    // ------------------------------------------------------------------ orders

    /// @inheritdoc IIsolatedTrader
    function hashOrder(Order calldata) external view returns (bytes32) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function validateOrder(Order calldata, bytes calldata, uint256) external view returns (bytes32, address) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function saltState(address, uint256) external view returns (SaltState) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function partialSlot(address, uint256) external view returns (uint256, uint256, uint256) {
        _staticDelegate();
    }

    // ------------------------------------------------------------------ accounts

    /// @inheritdoc IIsolatedTrader
    function position(address) external view returns (Position memory) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function health(address, uint256) external view returns (int256, uint256) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function floors(address) external view returns (Floors memory) {
        _staticDelegate();
    }

    /// @inheritdoc IAdjustments
    function hashMarginAdjustment(AdjustMargin calldata) external view returns (bytes32) {
        _staticDelegate();
    }

    /// @inheritdoc IAdjustments
    function hashLeverageAdjustment(AdjustLeverage calldata) external view returns (bytes32) {
        _staticDelegate();
    }

    /// @inheritdoc IAdjustments
    function isMarginNonceUsed(address, uint256) external view returns (bool) {
        _staticDelegate();
    }

    // ------------------------------------------------------------------ the market's own state

    /// @inheritdoc IIsolatedTrader
    function bank() external view returns (address) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function accountManager() external view returns (address) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function oracle() external view returns (address) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function domainSeparator() external view returns (bytes32) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function grid() external view returns (MarketGrid memory) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function clock() external view returns (Clock memory) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function lastReference() external view returns (Reference memory) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function parameters() external view returns (Parameters memory) {
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function pendingChange() external view returns (PendingChange memory) {
        _staticDelegate();
    }
}
