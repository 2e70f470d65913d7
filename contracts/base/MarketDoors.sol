// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAdjustments} from "../interfaces/IAdjustments.sol";
import {IFunding} from "../interfaces/IFunding.sol";
import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {IMarketExit} from "../interfaces/IMarketExit.sol";
import {IMarketRisk} from "../interfaces/IMarketRisk.sol";
import {AdjustLib} from "../libraries/AdjustLib.sol";
import {ChangeLib} from "../libraries/ChangeLib.sol";
import {ContextLib} from "../libraries/ContextLib.sol";
import {AdjustLeverage, AdjustMargin} from "../types/Adjustment.sol";
import {MarketContext} from "../types/MarketContext.sol";
import {Report} from "../types/Report.sol";
import {RiskTerms} from "../types/Risk.sol";
import {FundingRate, Poked, Wind} from "../types/TraderState.sol";
import {ForwardedSender} from "./ForwardedSender.sol";
import {MarketState} from "./MarketState.sol";
import {Restricted} from "./Restricted.sol";

/**
 * @title The market's doors to everything but settlement
 * @notice What is behind most of them is the code of `MarketDesk`, who may enter included; what asks for a role or for the
 * forwarded sender is answered here, because both are read from the call's own data.
 */
abstract contract MarketDoors is
    MarketState,
    IFunding,
    IAdjustments,
    IMarketRisk,
    IMarketExit,
    Restricted,
    ForwardedSender
{
    address internal immutable _DESK;

    constructor(address code) {
        if (code.code.length == 0) revert IIsolatedTrader.AddressZero();
        _DESK = code;
    }

    /// @dev The desk's code on this market's storage, for this call and its caller. What it reverts with is this call's error.
    function _atDesk() private {
        ContextLib.handOn(_DESK, _context());
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
        return _state.funding;
    }

    // ------------------------------------------------------------------ adjustments

    /// @inheritdoc IAdjustments
    function adjustMargin(uint256, AdjustMargin calldata, Report calldata, bytes calldata) external {
        _atDesk();
    }

    /// @inheritdoc IAdjustments
    function adjustLeverage(uint256, AdjustLeverage calldata, Report calldata, bytes calldata) external {
        _atDesk();
    }

    /// @inheritdoc IAdjustments
    function invalidateMarginNonces(uint256 newMinimum) external {
        AdjustLib.invalidateNonces(_state, _forwardedSender(), newMinimum);
    }

    /// @inheritdoc IAdjustments
    function hashMarginAdjustment(AdjustMargin calldata adjustment) external view returns (bytes32) {
        return AdjustLib.hashMargin(_context().domainSeparator, adjustment);
    }

    /// @inheritdoc IAdjustments
    function hashLeverageAdjustment(AdjustLeverage calldata adjustment) external view returns (bytes32) {
        return AdjustLib.hashLeverage(_context().domainSeparator, adjustment);
    }

    /// @inheritdoc IAdjustments
    function isMarginNonceUsed(address account, uint256 nonce) external view returns (bool) {
        return AdjustLib.isNonceUsed(_state, account, nonce);
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
    function setBackstop(address backstop, uint96 cap) external restricted {
        ChangeLib.setBackstop(_state, backstop, cap);
    }

    /// @inheritdoc IMarketRisk
    function riskTerms() external view returns (RiskTerms memory) {
        return _state.riskTerms;
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
        return _state.wind;
    }

    /// @inheritdoc IMarketExit
    function poked() external view returns (Poked memory) {
        return _state.poked;
    }

    /// @inheritdoc IMarketExit
    function unpaidClaim(address account) external view returns (uint256) {
        return _state.unpaidClaims[account];
    }
}
