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
 * state; roles are checked here, because `restricted` reads the selector from the call's own data. Parameters and
 * results are named for the ABI; a statement that lists them keeps the compiler from reporting them as unused.
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
    function updateFunding(
        uint256 actionId,
        uint256 asOf,
        int96 rate,
        uint48 validUntil,
        Report calldata report,
        Report calldata session
    ) external {
        (actionId, asOf, rate, validUntil, report, session);
        _delegate();
    }

    /// @inheritdoc IFunding
    function fundingRate() external view returns (FundingRate memory) {
        _staticDelegate();
    }

    // ------------------------------------------------------------------ operators

    /// @inheritdoc IIsolatedTrader
    function proposeOperator(address operator) external restricted {
        operator;
        _delegate();
    }

    /// @inheritdoc IIsolatedTrader
    function acceptOperator() external {
        _delegate();
    }

    /// @inheritdoc IIsolatedTrader
    function revokeOperator(address operator) external restricted {
        operator;
        _delegate();
    }

    /// @inheritdoc IIsolatedTrader
    function operatorStatus(address operator) external view returns (OperatorStatus) {
        operator;
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function readiness() external view returns (MarketMode mode, uint256 operators) {
        (mode, operators);
        _staticDelegate();
    }

    // ------------------------------------------------------------------ changes

    /// @inheritdoc IMarketChanges
    function scheduleParameters(Parameters calldata next, uint48 activeFrom) external restricted {
        (next, activeFrom);
        _delegate();
    }

    /// @inheritdoc IMarketChanges
    function cancelScheduledParameters() external restricted {
        _delegate();
    }

    /// @inheritdoc IMarketChanges
    function scheduleMode(MarketMode mode, uint48 activeFrom) external restricted {
        (mode, activeFrom);
        _delegate();
    }

    /// @inheritdoc IMarketChanges
    function restrictMode(MarketMode mode) external restricted {
        mode;
        _delegate();
    }

    /// @inheritdoc IMarketChanges
    function extendExpiry(uint48 expiresAt) external restricted {
        expiresAt;
        _delegate();
    }

    /// @inheritdoc IMarketChanges
    function extendDisputeWindow(uint48 disputeWindow) external restricted {
        disputeWindow;
        _delegate();
    }

    // ------------------------------------------------------------------ risk

    /// @inheritdoc IMarketRisk
    function inheritPosition(uint256 actionId, uint256 asOf, address account, Report calldata report) external {
        (actionId, asOf, account, report);
        _delegate();
    }

    /// @inheritdoc IMarketRisk
    function deleverage(
        uint256 actionId,
        uint256 asOf,
        address account,
        address[] calldata counterparties,
        uint256[] calldata steps,
        Report calldata report
    ) external {
        (actionId, asOf, account, counterparties, steps, report);
        _delegate();
    }

    /// @inheritdoc IMarketRisk
    function setBackstop(address backstop, uint96 cap) external restricted {
        (backstop, cap);
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
    function poke(Report calldata report) external {
        report;
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function freeze() external {
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function submitFinalReport(Report calldata report) external {
        report;
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function finalizeMarket(uint256 actionId, uint256 asOf) external {
        (actionId, asOf);
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function reportInsolvent(address[] calldata accounts) external {
        accounts;
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function coverDeficit(uint96 amount) external {
        amount;
        _delegate();
    }

    /// @inheritdoc IMarketWindDown
    function claim(address account) external {
        account;
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
    function unpaidClaim(address account) external view returns (uint256) {
        account;
        _staticDelegate();
    }

    // ------------------------------------------------------------------ orders

    /// @inheritdoc IIsolatedTrader
    function hashOrder(Order calldata order) external view returns (bytes32) {
        order;
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function validateOrder(Order calldata order, bytes calldata signature, uint256 asOf)
        external
        view
        returns (bytes32 hash, address signer)
    {
        (order, signature, asOf, hash, signer);
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function saltState(address maker, uint256 salt) external view returns (SaltState) {
        (maker, salt);
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function partialSlot(address maker, uint256 index) external view returns (uint256 salt, uint256 filled, uint256 batchId) {
        (maker, index, salt, filled, batchId);
        _staticDelegate();
    }

    // ------------------------------------------------------------------ accounts

    /// @inheritdoc IIsolatedTrader
    function position(address account) external view returns (Position memory) {
        account;
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function health(address account, uint256 price) external view returns (int256 equityX, uint256 notionalX) {
        (account, price, equityX, notionalX);
        _staticDelegate();
    }

    /// @inheritdoc IIsolatedTrader
    function floors(address account) external view returns (Floors memory) {
        account;
        _staticDelegate();
    }

    /// @inheritdoc IAdjustments
    function hashMarginAdjustment(AdjustMargin calldata adjustment) external view returns (bytes32) {
        adjustment;
        _staticDelegate();
    }

    /// @inheritdoc IAdjustments
    function hashLeverageAdjustment(AdjustLeverage calldata adjustment) external view returns (bytes32) {
        adjustment;
        _staticDelegate();
    }

    /// @inheritdoc IAdjustments
    function isMarginNonceUsed(address account, uint256 nonce) external view returns (bool) {
        (account, nonce);
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
