// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {MarketState} from "./base/MarketState.sol";
import {IIsolatedTrader} from "./interfaces/IIsolatedTrader.sol";
import {AdjustLib} from "./libraries/AdjustLib.sol";
import {ChangeLib} from "./libraries/ChangeLib.sol";
import {ContextLib} from "./libraries/ContextLib.sol";
import {FundingLib} from "./libraries/FundingLib.sol";
import {LiquidationLib} from "./libraries/LiquidationLib.sol";
import {MarginLib} from "./libraries/MarginLib.sol";
import {PositionLib} from "./libraries/PositionLib.sol";
import {SaltLib} from "./libraries/SaltLib.sol";
import {ValidationLib} from "./libraries/ValidationLib.sol";
import {WindDownLib} from "./libraries/WindDownLib.sol";
import {AdjustLeverage, AdjustMargin} from "./types/Adjustment.sol";
import {MarketGrid, MarketKind, MarketMode, OperatorStatus, Parameters} from "./types/Market.sol";
import {MarketContext} from "./types/MarketContext.sol";
import {Order, SaltState} from "./types/Order.sol";
import {Position} from "./types/Position.sol";
import {Report} from "./types/Report.sol";
import {RiskTerms} from "./types/Risk.sol";
import {DOMAIN_NAME, DOMAIN_VERSION} from "./types/SigningDomain.sol";
import {
    Clock,
    Ending,
    Floors,
    FundingRate,
    ListedTerms,
    PendingChange,
    Poked,
    Reference,
    TraderState,
    WindDown
} from "./types/TraderState.sol";

/**
 * @title Infrequent functions and views of a market
 * @notice Code only, shared by all markets. A market delegates here, so the code runs on the market's storage, as the market
 * and with the market's `msg.sender`; the market's immutables follow the arguments (`ContextLib`). The contract has no storage,
 * owner or rights of its own, cannot be replaced, and reverts direct calls. Each function is documented in `IIsolatedTrader`
 * and the interfaces that it inherits. Operators are checked here; roles are checked in `MarketDelegator`.
 */
contract MarketExtension is MarketState, ReentrancyGuardTransient {
    using SaltLib for TraderState;

    address private immutable _SELF = address(this);

    // ------------------------------------------------------------------ funding

    function updateFunding(
        uint256 actionId,
        uint256 asOf,
        int96 rate,
        uint48 validUntil,
        Report calldata report,
        Report calldata session
    ) external onlyOperator nonReentrant {
        FundingLib.updateFunding(_state, _context(), actionId, asOf, rate, validUntil, report, session);
    }

    // ------------------------------------------------------------------ operators

    function proposeOperator(address operator) external {
        _requireDelegated();
        if (_operators[operator] == OperatorStatus.None) _setOperator(operator, OperatorStatus.Proposed);
    }

    function acceptOperator() external {
        _requireDelegated();
        if (_operators[msg.sender] != OperatorStatus.Proposed) revert IIsolatedTrader.OperatorNotProposed(msg.sender);
        _setOperator(msg.sender, OperatorStatus.Approved);
    }

    function revokeOperator(address operator) external {
        _requireDelegated();
        _setOperator(operator, OperatorStatus.None);
    }

    function _setOperator(address operator, OperatorStatus status) private {
        if (_operators[operator] == OperatorStatus.Approved) --_operatorCount;
        if (status == OperatorStatus.Approved) ++_operatorCount;
        _operators[operator] = status;
        emit IIsolatedTrader.OperatorChanged(operator, status);
    }

    function operatorStatus(address operator) external view returns (OperatorStatus) {
        _requireDelegated();
        return _operators[operator];
    }

    function readiness() external view returns (MarketMode mode, uint256 operators) {
        PendingChange memory pending = _market().pending;
        mode = _state.parameters.mode;
        if (pending.modeFrom != 0 && pending.mode > mode) mode = pending.mode;
        if (pending.restrictionFrom != 0 && pending.restriction > mode) mode = pending.restriction;
        uint256 expiresAt = _state.ending.expiresAt;
        if (expiresAt != 0 && block.timestamp * 1000 >= expiresAt && mode < MarketMode.Settling) mode = MarketMode.Settling;
        operators = _operatorCount;
    }

    // ------------------------------------------------------------------ changes

    function scheduleParameters(Parameters calldata next, uint48 activeFrom) external {
        ChangeLib.scheduleParameters(_state, _context().kind, next, activeFrom);
    }

    function cancelScheduledParameters() external {
        ChangeLib.cancelScheduledParameters(_market());
    }

    function scheduleMode(MarketMode mode, uint48 activeFrom) external {
        ChangeLib.scheduleMode(_market(), mode, activeFrom);
    }

    function restrictMode(MarketMode mode) external {
        ChangeLib.restrictMode(_market(), mode);
    }

    function extendExpiry(uint48 expiresAt) external {
        ChangeLib.extendExpiry(_state, _context().expiresAt, expiresAt);
    }

    function extendDisputeWindow(uint48 disputeWindow) external {
        ChangeLib.extendDisputeWindow(_market(), disputeWindow);
    }

    function setBackstop(address backstop, uint96 cap) external {
        ChangeLib.setBackstop(_market(), backstop, cap);
    }

    // ------------------------------------------------------------------ risk

    function inheritPosition(uint256 actionId, uint256 asOf, address account, Report calldata report)
        external
        onlyOperator
        nonReentrant
    {
        LiquidationLib.inheritPosition(_state, _context(), actionId, asOf, account, report);
    }

    function deleverage(
        uint256 actionId,
        uint256 asOf,
        address account,
        address[] calldata counterparties,
        uint256[] calldata steps,
        Report calldata report
    ) external onlyOperator nonReentrant {
        LiquidationLib.deleverage(_state, _context(), actionId, asOf, account, counterparties, steps, report);
    }

    // ------------------------------------------------------------------ wind-down

    function heartbeat() external onlyOperator {
        WindDownLib.heartbeat(_state);
    }

    function requestFreeze() external {
        WindDownLib.requestFreeze(_market());
    }

    function poke(Report calldata report) external {
        WindDownLib.poke(_state, _context(), report);
    }

    function freeze() external nonReentrant {
        WindDownLib.freeze(_state, _context());
    }

    function submitFinalReport(Report calldata report) external {
        WindDownLib.submitFinalReport(_state, _context(), report);
    }

    function finalizeMarket(uint256 actionId, uint256 asOf) external nonReentrant {
        WindDownLib.finalizeMarket(_state, _context(), actionId, asOf);
    }

    function reportInsolvent(address[] calldata accounts) external nonReentrant {
        WindDownLib.reportInsolvent(_state, _context(), accounts);
    }

    function coverDeficit(uint96 amount) external nonReentrant {
        WindDownLib.coverDeficit(_state, _context(), amount);
    }

    function claim(address account) external nonReentrant {
        WindDownLib.claim(_state, _context(), account);
    }

    // ------------------------------------------------------------------ orders

    function hashOrder(Order calldata order) external view returns (bytes32) {
        return ValidationLib.hashOrder(_context().domainSeparator, order);
    }

    function validateOrder(Order calldata order, bytes calldata signature, uint256 asOf)
        external
        view
        returns (bytes32 hash, address signer)
    {
        return ValidationLib.validateOrder(_state, _context(), order, signature, asOf);
    }

    function saltState(address maker, uint256 salt) external view returns (SaltState) {
        return _market().stateOf(maker, salt);
    }

    function partialSlot(address maker, uint256 index)
        external
        view
        returns (uint256 salt, uint256 filled, uint256 batchId)
    {
        return _market().readSlot(maker, index);
    }

    // ------------------------------------------------------------------ accounts

    function position(address account) public view returns (Position memory held) {
        TraderState storage state = _market();
        PositionLib.unpack(state.positions[account].bits, state.reference_.fundingIndex, held);
    }

    function health(address account, uint256 price) external view returns (int256 equityX, uint256 notionalX) {
        MarketContext calldata context = _context();
        bool binary = context.kind == MarketKind.BinaryFuture;
        return MarginLib.exposure(position(account), price * context.step, context.step, binary);
    }

    function floors(address account) external view returns (Floors memory) {
        return _market().floors[account];
    }

    function unpaidClaim(address account) external view returns (uint256) {
        return _market().unpaidClaims[account];
    }

    function hashMarginAdjustment(AdjustMargin calldata adjustment) external view returns (bytes32) {
        return AdjustLib.hashMargin(_context().domainSeparator, adjustment);
    }

    function hashLeverageAdjustment(AdjustLeverage calldata adjustment) external view returns (bytes32) {
        return AdjustLib.hashLeverage(_context().domainSeparator, adjustment);
    }

    function isMarginNonceUsed(address account, uint256 nonce) external view returns (bool) {
        return AdjustLib.isNonceUsed(_market(), account, nonce);
    }

    // ------------------------------------------------------------------ the market's own state

    function bank() external view returns (address) {
        return address(_context().bank);
    }

    function accountManager() external view returns (address) {
        return address(_context().accountManager);
    }

    function oracle() external view returns (address) {
        return address(_context().oracle);
    }

    function domainSeparator() external view returns (bytes32) {
        return _context().domainSeparator;
    }

    function eip712Domain()
        external
        view
        returns (
            bytes1 fields,
            string memory name,
            string memory version,
            uint256 chainId,
            address verifyingContract,
            bytes32 salt,
            uint256[] memory extensions
        )
    {
        _requireDelegated();
        // Fields in use: name, version, chain and contract (ERC-5267).
        return (hex"0f", DOMAIN_NAME, DOMAIN_VERSION, block.chainid, address(this), salt, extensions);
    }

    function grid() external view returns (MarketGrid memory) {
        MarketContext calldata context = _context();
        ListedTerms memory terms = _state.listedTerms;
        return MarketGrid({
            marketId: terms.marketId,
            kind: context.kind,
            tick: context.tick,
            step: context.step,
            feedId: context.feedId,
            sessionFeedId: context.sessionFeedId,
            finalFeedId: terms.feedId,
            finalLow: terms.low,
            finalHigh: terms.high,
            expiresAt: context.kind == MarketKind.Perpetual ? 0 : uint48(context.expiresAt),
            disputeWindow: terms.disputeWindow
        });
    }

    function clock() external view returns (Clock memory) {
        return _market().clock;
    }

    function lastReference() external view returns (Reference memory) {
        return _market().reference_;
    }

    function parameters() external view returns (Parameters memory) {
        return _market().parameters;
    }

    function pendingChange() external view returns (PendingChange memory) {
        return _market().pending;
    }

    function fundingRate() external view returns (FundingRate memory) {
        return _market().funding;
    }

    function riskTerms() external view returns (RiskTerms memory) {
        return _market().riskTerms;
    }

    function windDown() external view returns (WindDown memory) {
        return _market().windDown;
    }

    function ending() external view returns (Ending memory) {
        return _market().ending;
    }

    function poked() external view returns (Poked memory) {
        return _market().poked;
    }

    // ------------------------------------------------------------------ internals

    /// @dev The storage of the delegating market.
    function _market() private view returns (TraderState storage) {
        _requireDelegated();
        return _state;
    }

    function _context() private view returns (MarketContext calldata) {
        _requireDelegated();
        return ContextLib.read();
    }

    function _requireDelegated() private view {
        if (address(this) == _SELF) revert IIsolatedTrader.ExtensionCalledDirectly();
    }
}
