// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {IMarginBank} from "../interfaces/IMarginBank.sol";
import {SILENCE} from "../types/Durations.sol";
import {AccountRisk, EndingPreview, MarketTerms} from "../types/Lens.sol";
import {MarketGrid, MarketKind} from "../types/Market.sol";
import {Position} from "../types/Position.sol";
import {Valuation} from "../types/Risk.sol";
import {Clock, Ending, Poked, Reference, WindDown} from "../types/TraderState.sol";
import {ActionLib} from "./ActionLib.sol";
import {EndingLib} from "./EndingLib.sol";
import {FundingLib} from "./FundingLib.sol";
import {MarginLib} from "./MarginLib.sol";
import {PauseLib} from "./PauseLib.sol";
import {PositionLib} from "./PositionLib.sol";

/// @title Terms, risk and ending of a market, computed from its views. Inlined into `SettlementLens`
library RiskLens {
    uint256 private constant MILLION = 1e6;
    uint256 private constant ONE = 1e18;

    // ------------------------------------------------------------------ market

    function termsAt(IIsolatedTrader market, uint256 asOf) internal view returns (MarketTerms memory terms) {
        Ending memory ending = market.ending();
        terms.closesAt = EndingLib.closesAt(ending);
        (terms.parameters,) = ActionLib.changed(market.parameters(), market.pendingChange(), asOf);
        terms.mode = EndingLib.modeAt(ending.expiresAt, terms.parameters.mode, asOf);
        terms.graceEndsAt = PauseLib.graceEndsAt(IMarginBank(market.bank()));
        terms.backstop = market.riskTerms().backstop;
        Reference memory last = market.lastReference();
        terms.fundingIndex = last.fundingIndex;
        if (!last.funded) return terms;
        uint256 until = terms.closesAt != 0 && terms.closesAt < asOf ? terms.closesAt : asOf;
        terms.fundingIndex = FundingLib.indexAt(market.fundingRate(), last.fundingIndex, market.clock().asOf, until);
    }

    function valuationOf(IIsolatedTrader market, MarketTerms memory terms, uint256 price)
        internal
        view
        returns (Valuation memory)
    {
        MarketGrid memory grid = market.grid();
        return Valuation({
            oracleStepX: price * grid.step,
            step: grid.step,
            binary: grid.kind == MarketKind.BinaryFuture,
            imr: terms.parameters.imr,
            mmr: terms.parameters.mmr
        });
    }

    // ------------------------------------------------------------------ accounts

    function positionAt(IIsolatedTrader market, MarketTerms memory terms, address account)
        internal
        view
        returns (Position memory position)
    {
        position = market.position(account);
        position.margin -= position.size * (terms.fundingIndex - market.lastReference().fundingIndex);
    }

    function riskOf(IIsolatedTrader market, MarketTerms memory terms, address account, uint256 price, uint256 asOf)
        internal
        view
        returns (AccountRisk memory risk)
    {
        Valuation memory valuation = valuationOf(market, terms, price);
        risk.account = account;
        risk.position = positionAt(market, terms, account);
        risk.free = IMarginBank(market.bank()).account(account).free;
        (risk.equityX, risk.notionalX) = MarginLib.exposure(risk.position, valuation);
        if (risk.position.size == 0) return risk;
        uint256 rate = valuation.mmr + MarginLib.LIQUIDATION_BUFFER;
        bool due = risk.equityX <= 0 || asOf >= terms.graceEndsAt;
        risk.liquidatable = due && _isBelow(risk, rate);
        risk.inheritable = due && account != terms.backstop && _isBelow(risk, valuation.mmr);
        risk.liquidationPrice = _priceAt(risk.position, valuation, rate);
        risk.bankruptcyPrice = _bankruptcyPrice(risk.position, valuation);
    }

    function _isBelow(AccountRisk memory risk, uint256 rate) private pure returns (bool) {
        return risk.equityX * MarginLib.MILLION < int256(risk.notionalX * rate);
    }

    /// @dev Twin of domain/risk/liquidation-price.ts. `rate` in millionths.
    function _priceAt(Position memory position, Valuation memory valuation, uint256 rate) private pure returns (uint256) {
        if (_isFullyCollateralised(position, valuation)) return 0;
        uint256 quantity = PositionLib.abs(position.size) * valuation.step;
        if (position.size > 0) {
            int256 debt = int256(position.entryNotional) - position.margin;
            if (debt <= 0) return 0;
            uint256 long = Math.ceilDiv(uint256(debt) * ONE * MILLION, quantity * (MILLION - rate)) - 1;
            return valuation.binary && long > ONE ? ONE : long;
        }
        int256 worth = (int256(position.entryNotional) + position.margin) * int256(ONE * MILLION);
        if (valuation.binary) worth -= int256(rate * quantity * ONE);
        if (worth < 0) return 1;
        return uint256(worth) / (quantity * (valuation.binary ? MILLION - rate : MILLION + rate)) + 1;
    }

    /// @dev Long: (entry - margin) / quantity, rounded down; short: (entry + margin) / quantity, rounded up.
    function _bankruptcyPrice(Position memory position, Valuation memory valuation) private pure returns (uint256 price) {
        uint256 quantity = PositionLib.abs(position.size) * valuation.step;
        int256 entry = int256(position.entryNotional);
        int256 worth = position.size > 0 ? entry - position.margin : entry + position.margin;
        if (worth <= 0) return position.size > 0 ? 0 : 1;
        price = position.size > 0 ? (uint256(worth) * ONE) / quantity : Math.ceilDiv(uint256(worth) * ONE, quantity);
        if (valuation.binary && price > ONE) price = position.size > 0 ? ONE : 0;
    }

    function _isFullyCollateralised(Position memory position, Valuation memory valuation) private pure returns (bool) {
        if (!valuation.binary) return false;
        int256 entry = int256(position.entryNotional);
        int256 size = position.size;
        return position.margin >= (size > 0 ? entry : -size * int256(valuation.step) - entry);
    }

    // ------------------------------------------------------------------ ending

    function endingOf(IIsolatedTrader market) internal view returns (EndingPreview memory preview) {
        Ending memory ending = market.ending();
        WindDown memory windDown = market.windDown();
        uint256 time = block.timestamp * 1000;
        preview.closesAt = EndingLib.closesAt(ending);
        if (windDown.endedAt != 0) return preview;
        if (!EndingLib.isClosed(ending, time)) {
            preview.freezable = _isSilent(windDown, market.clock(), time);
        } else {
            preview.reportableUntil = EndingLib.reportableUntil(ending);
            bool late = time > preview.reportableUntil;
            (preview.finalizable, preview.freezable) = (late && ending.reportedAt != 0, late && ending.reportedAt == 0);
        }
        if (preview.finalizable) preview.price = ending.price;
        if (preview.freezable) preview.price = _newestPrice(market);
    }

    function _isSilent(WindDown memory windDown, Clock memory clock, uint256 time) private pure returns (bool) {
        uint256 aliveAt = Math.max(windDown.heartbeatAt, clock.asOf);
        uint256 requestedAt = windDown.requestedAt;
        return requestedAt != 0 && aliveAt <= requestedAt && time > requestedAt + SILENCE;
    }

    function _newestPrice(IIsolatedTrader market) private view returns (uint256) {
        Reference memory last = market.lastReference();
        Poked memory poked = market.poked();
        return poked.observedAt > last.observedAt ? poked.price : last.oraclePrice;
    }
}
