// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IMarketExit} from "../interfaces/IMarketExit.sol";
import {WindLib} from "../libraries/WindLib.sol";
import {Report} from "../types/Report.sol";
import {Poked, Wind} from "../types/TraderState.sol";
import {MarketState} from "./MarketState.sol";

/// @title The market's doors to `WindLib`
abstract contract MarketExit is IMarketExit, MarketState, ReentrancyGuardTransient {
    // ------------------------------------------------------------------ signs of life

    /// @inheritdoc IMarketExit
    function heartbeat() external onlyOperator {
        WindLib.heartbeat(_state);
    }

    /// @inheritdoc IMarketExit
    function requestFreeze() external {
        WindLib.requestFreeze(_state);
    }

    /// @inheritdoc IMarketExit
    function poke(Report calldata report) external {
        WindLib.poke(_state, _context(), report);
    }

    // ------------------------------------------------------------------ the end

    /// @inheritdoc IMarketExit
    function freeze() external nonReentrant {
        WindLib.freeze(_state, _context());
    }

    /// @inheritdoc IMarketExit
    function finalizeMarket(uint256 actionId, uint256 asOf, Report calldata report) external onlyOperator nonReentrant {
        WindLib.finalizeMarket(_state, _context(), actionId, asOf, report);
    }

    // ------------------------------------------------------------------ after the end

    /// @inheritdoc IMarketExit
    function listInsolvent(address[] calldata accounts) external nonReentrant {
        WindLib.listInsolvent(_state, _context(), accounts);
    }

    /// @inheritdoc IMarketExit
    function coverDeficit(uint96 amount) external nonReentrant {
        WindLib.coverDeficit(_state, _context(), amount);
    }

    /// @inheritdoc IMarketExit
    function claim(address account) external nonReentrant {
        WindLib.claim(_state, _context(), account);
    }

    // ------------------------------------------------------------------ views

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
