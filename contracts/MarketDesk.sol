// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {MarketState} from "./base/MarketState.sol";
import {IIsolatedTrader} from "./interfaces/IIsolatedTrader.sol";
import {AdjustLib} from "./libraries/AdjustLib.sol";
import {ContextLib} from "./libraries/ContextLib.sol";
import {FundingLib} from "./libraries/FundingLib.sol";
import {LiquidationLib} from "./libraries/LiquidationLib.sol";
import {WindLib} from "./libraries/WindLib.sol";
import {AdjustLeverage, AdjustMargin} from "./types/Adjustment.sol";
import {MarketContext} from "./types/MarketContext.sol";
import {Report} from "./types/Report.sol";

/**
 * @title What a market does besides settling batches
 * @notice Code only, one for all markets: a market delegates here, so it runs on the market's storage, with the market's
 * rights and for the market's caller; the market's immutables come after the arguments (`ContextLib`). It has no storage, no
 * owner and no rights of its own, cannot be exchanged, and refuses to be called directly. Each function is documented where
 * the market declares it: `IFunding`, `IAdjustments`, `IMarketRisk`, `IMarketExit`.
 */
contract MarketDesk is MarketState, ReentrancyGuardTransient {
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

    // ------------------------------------------------------------------ adjustments

    function adjustMargin(uint256 asOf, AdjustMargin calldata adjustment, Report calldata report, bytes calldata signature)
        external
        onlyOperator
        nonReentrant
    {
        AdjustLib.adjustMargin(_state, _context(), asOf, adjustment, report, signature);
    }

    function adjustLeverage(
        uint256 asOf,
        AdjustLeverage calldata adjustment,
        Report calldata report,
        bytes calldata signature
    ) external onlyOperator nonReentrant {
        AdjustLib.adjustLeverage(_state, _context(), asOf, adjustment, report, signature);
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

    // ------------------------------------------------------------------ exit

    function heartbeat() external onlyOperator {
        WindLib.heartbeat(_state);
    }

    function requestFreeze() external {
        _requireHandedOn();
        WindLib.requestFreeze(_state);
    }

    function poke(Report calldata report) external {
        WindLib.poke(_state, _context(), report);
    }

    function freeze() external nonReentrant {
        WindLib.freeze(_state, _context());
    }

    function finalizeMarket(uint256 actionId, uint256 asOf, Report calldata report) external onlyOperator nonReentrant {
        WindLib.finalizeMarket(_state, _context(), actionId, asOf, report);
    }

    function listInsolvent(address[] calldata accounts) external nonReentrant {
        WindLib.listInsolvent(_state, _context(), accounts);
    }

    function coverDeficit(uint96 amount) external nonReentrant {
        WindLib.coverDeficit(_state, _context(), amount);
    }

    function claim(address account) external nonReentrant {
        WindLib.claim(_state, _context(), account);
    }

    // ------------------------------------------------------------------ internals

    function _context() private view returns (MarketContext calldata) {
        _requireHandedOn();
        return ContextLib.read();
    }

    function _requireHandedOn() private view {
        if (address(this) == _SELF) revert IIsolatedTrader.DeskCalledDirectly();
    }
}
