// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IMarketRisk} from "../interfaces/IMarketRisk.sol";
import {LiquidationLib} from "../libraries/LiquidationLib.sol";
import {Report} from "../types/Report.sol";
import {RiskTerms} from "../types/Risk.sol";
import {MarketState} from "./MarketState.sol";

/// @title The market's doors to `LiquidationLib`
abstract contract MarketRisk is IMarketRisk, MarketState, ReentrancyGuardTransient {
    // ------------------------------------------------------------------ actions

    /// @inheritdoc IMarketRisk
    function inheritPosition(uint256 actionId, uint256 asOf, address account, Report calldata report)
        external
        onlyOperator
        nonReentrant
    {
        LiquidationLib.inheritPosition(_state, _context(), actionId, asOf, account, report);
    }

    /// @inheritdoc IMarketRisk
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

    // ------------------------------------------------------------------ management

    /// @inheritdoc IMarketRisk
    function setBackstop(address backstop, uint96 cap) external restricted {
        LiquidationLib.setBackstop(_state, backstop, cap);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IMarketRisk
    function riskTerms() external view returns (RiskTerms memory) {
        return _state.riskTerms;
    }
}
